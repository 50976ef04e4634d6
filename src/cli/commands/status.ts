import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import type { StatusFlags } from "../../options/setup.js";
import { changedManifestText } from "../../report/next-step.js";
import { runJson, runsTable, statusJson, statusText } from "../../report/status.js";
import { terminalText } from "../../text/terminal.js";
import { hasChanged } from "../../workspace/changed-manifest.js";
import { noRunsText, refuseLost } from "../../workspace/history.js";
import { historyOf, statusOf } from "../../workspace/status.js";
import { type Workspace, workspaceExists } from "../../workspace/workspace.js";
import { print } from "../output/print.js";
import { elsewhere, flagsTo, workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function status({
  flags,
  args,
  machine,
}: Call<StatusFlags, { run?: number }>): Promise<undefined> {
  if (flags.all && args.run !== undefined)
    throw new EarlyExit("usage", `--all lists every run. Leave out the ${args.run}, or --all.`);
  const workspace = workspaceOf(flags, machine);
  refuseLost(workspace);
  if (flags.watch && workspaceExists(workspace)) {
    const { watch } = await import("./watch.js");
    await watch(workspace, args.run, flags.quiet ?? false, machine);
  }
  if (flags.all) await everyRun(workspace, flags, machine);
  else await oneRun(workspace, args.run, flags, machine);
}

async function oneRun(
  workspace: Workspace,
  which: number | undefined,
  flags: StatusFlags,
  machine: Machine,
): Promise<void> {
  const { clock, cwd, stderr } = machine;
  const facts = workspaceExists(workspace) ? await statusOf(workspace, which ?? "newest", clock) : null;
  if (facts === null && which !== undefined) {
    const there = flagsTo(workspace, flags.sandbox ?? false, machine);
    throw new EarlyExit(
      "usage",
      `there is no run ${which} in ${workspace.root}. \`bulkgen status --all${there}\` lists the runs.`,
    );
  }
  if (flags.json && facts === null) stderr.write(`${noRunsText(workspace)}\n`);
  const isOld = facts !== null && facts.resume !== null && !flags.json && (await hasChanged(facts.run));
  const more = isOld ? `\n${terminalText(changedManifestText(facts.run, cwd))}` : "";
  print(flags, machine, "status", facts && statusJson(facts), (style) =>
    facts === null
      ? noRunsText(workspace)
      : statusText(facts, cwd, style, elsewhere(workspace, flags.sandbox ?? false, machine)) + more,
  );
}

async function everyRun(workspace: Workspace, flags: StatusFlags, machine: Machine): Promise<void> {
  const { clock, cwd, stderr } = machine;
  const runs = workspaceExists(workspace) ? await historyOf(workspace, clock) : [];
  const { root } = workspace;
  const document = { workspace: root, sandbox: flags.sandbox ?? false, runs: runs.map(runJson) };
  if (flags.json && runs.length === 0) stderr.write(`${noRunsText(workspace)}\n`);
  print(flags, machine, "runs", document, (style) =>
    runs.length === 0
      ? noRunsText(workspace)
      : runsTable(runs, cwd, style, elsewhere(workspace, flags.sandbox ?? false, machine)),
  );
}
