import type { Command } from "commander";
import type { Workspace } from "../../job/workspace/workspace.js";
import { type SharedFlags, withWorkspace } from "../flags/shared.js";
import { positive } from "../flags/values.js";

interface StatusFlags extends SharedFlags {
  all?: boolean;
}

export function defineStatus(program: Command): void {
  withWorkspace(program.command("status"))
    .description("show where the newest or the named run stands; asks nobody")
    .argument("[run]", "number of the run", positive)
    .option("--all", "list every run")
    .action(status);
}

async function status(which: number | undefined, flags: StatusFlags): Promise<void> {
  const { findWorkspace } = await import("../../job/workspace/workspace.js");
  const find = (sandbox: boolean) =>
    findWorkspace({
      cwd: process.cwd(),
      sandbox,
      env: process.env,
      ...(flags.workspace === undefined ? {} : { named: flags.workspace }),
    });
  const workspace = find(flags.sandbox ?? false);
  const { refuseLost } = await import("../../job/workspace/history.js");
  refuseLost(workspace);
  const text = flags.all ? await everyRun(workspace, flags) : await oneRun(workspace, which, flags);
  process.stdout.write(`${text ?? (await nothing(workspace, flags.sandbox ? null : find(true)))}\n`);
}

async function oneRun(
  workspace: Workspace,
  which: number | undefined,
  flags: StatusFlags,
): Promise<string | null> {
  const [{ workspaceExists }, { statusOf }, { statusJson }, { systemClock }] = await Promise.all([
    import("../../job/workspace/workspace.js"),
    import("../../job/workspace/status.js"),
    import("../../report/status.js"),
    import("../../system.js"),
  ]);
  const facts = workspaceExists(workspace) ? await statusOf(workspace, which ?? "newest", systemClock) : null;
  if (facts === null && which !== undefined) {
    const { EarlyExit } = await import("../../core/exit.js");
    throw new EarlyExit("usage", `no run ${which} in ${workspace.root}; \`bulkgen status --all\` lists them`);
  }
  if (flags.json) return JSON.stringify(facts && statusJson(facts));
  if (facts === null) return null;
  const [{ statusText }, { terminalStyle }, { shownPath }] = await Promise.all([
    import("../../report/status.js"),
    import("../../text/table.js"),
    import("../../report/problem-text.js"),
  ]);
  const folder = shownPath(facts.folder, process.cwd());
  return statusText({ ...facts, folder }, terminalStyle(process.stdout, process.env));
}

async function everyRun(workspace: Workspace, flags: StatusFlags): Promise<string | null> {
  const [{ workspaceExists }, { historyOf }, { runJson }, { runsTable }, { terminalStyle }, { systemClock }] =
    await Promise.all([
      import("../../job/workspace/workspace.js"),
      import("../../job/workspace/status.js"),
      import("../../report/status.js"),
      import("../../report/status.js"),
      import("../../text/table.js"),
      import("../../system.js"),
    ]);
  const runs = workspaceExists(workspace) ? await historyOf(workspace, systemClock) : [];
  if (flags.json) {
    const { root } = workspace;
    return JSON.stringify({ workspace: root, sandbox: flags.sandbox ?? false, runs: runs.map(runJson) });
  }
  return runs.length === 0 ? null : runsTable(runs, terminalStyle(process.stdout, process.env));
}

/** What to say where there is nothing to show; a rehearsal is named only where there was one. */
async function nothing(workspace: Workspace, rehearsal: Workspace | null): Promise<string> {
  const { workspaceExists } = await import("../../job/workspace/workspace.js");
  return rehearsal && workspaceExists(rehearsal)
    ? `only rehearsals in ${workspace.root} so far; \`bulkgen status --sandbox\` shows them`
    : `no runs in ${workspace.root} yet`;
}
