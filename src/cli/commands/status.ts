import { EarlyExit } from "../../core/exit.js";
import { noRunsText, refuseLost } from "../../job/workspace/history.js";
import { historyOf, statusOf } from "../../job/workspace/status.js";
import { type Workspace, workspaceExists } from "../../job/workspace/workspace.js";
import type { Machine } from "../../machine.js";
import { runJson, runsTable, statusJson, statusText } from "../../report/status.js";
import { terminalStyle } from "../../text/table.js";
import { jsonText } from "../../text/terminal.js";
import type { StatusFlags } from "../flags/setup.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function status({
  flags,
  args,
  machine,
}: Call<StatusFlags, { run?: number }>): Promise<undefined> {
  const workspace = workspaceOf(flags, machine);
  refuseLost(workspace);
  if (flags.watch && workspaceExists(workspace)) {
    const { watch } = await import("./watch.js");
    await watch(workspace, args.run, flags.quiet ?? false, machine);
  }
  const text = flags.all
    ? await everyRun(workspace, flags, machine)
    : await oneRun(workspace, args.run, flags, machine);
  machine.stdout.write(`${text ?? noRunsText(workspace)}\n`);
}

async function oneRun(
  workspace: Workspace,
  which: number | undefined,
  flags: StatusFlags,
  { clock, cwd, stdout, env }: Machine,
): Promise<string | null> {
  const facts = workspaceExists(workspace) ? await statusOf(workspace, which ?? "newest", clock) : null;
  if (facts === null && which !== undefined) {
    throw new EarlyExit(
      "usage",
      `there is no run ${which} in ${workspace.root}. \`bulkgen status --all\` lists the runs.`,
    );
  }
  if (flags.json) return jsonText(facts && statusJson(facts));
  if (facts === null) return null;
  return statusText(facts, cwd, terminalStyle(stdout, env));
}

async function everyRun(
  workspace: Workspace,
  flags: StatusFlags,
  { clock, cwd, stdout, env }: Machine,
): Promise<string | null> {
  const runs = workspaceExists(workspace) ? await historyOf(workspace, clock) : [];
  if (flags.json) {
    const { root } = workspace;
    return jsonText({ workspace: root, sandbox: flags.sandbox ?? false, runs: runs.map(runJson) });
  }
  return runs.length === 0 ? null : runsTable(runs, cwd, terminalStyle(stdout, env));
}
