import type { Command } from "commander";
import { type SharedFlags, withWorkspace } from "./flags.js";
import { positive } from "./values.js";

export function defineStatus(program: Command): void {
  withWorkspace(program.command("status"))
    .description("show where the newest or the named run stands; asks nobody")
    .argument("[run]", "number of the run", positive)
    .action(status);
}

async function status(which: number | undefined, flags: SharedFlags): Promise<void> {
  const [{ findWorkspace, workspaceExists }, { statusOf }, { statusText }, { systemClock }] =
    await Promise.all([
      import("../job/workspace.js"),
      import("../job/status.js"),
      import("../report/status.js"),
      import("../system.js"),
    ]);
  const named = flags.workspace === undefined ? {} : { named: flags.workspace };
  const workspace = findWorkspace({
    cwd: process.cwd(),
    sandbox: flags.sandbox ?? false,
    env: process.env,
    ...named,
  });
  const facts = workspaceExists(workspace) ? await statusOf(workspace, which ?? "newest", systemClock) : null;
  if (flags.json) process.stdout.write(`${JSON.stringify(facts)}\n`);
  else if (facts) process.stdout.write(`${statusText(facts)}\n`);
  else
    process.stdout.write(
      `no runs in ${workspace.root} yet${flags.sandbox ? "" : " (a rehearsal is shown with --sandbox)"}\n`,
    );
}
