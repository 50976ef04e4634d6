import { resolve } from "node:path";
import type { ExitName } from "../../core/exit.js";
import { planJob } from "../../job/run/plan-job.js";
import { refuseUnusable } from "../../job/state-folder/state-folder.js";
import { forLooking } from "../../job/workspace/workspace.js";
import type { Machine } from "../../machine.js";
import { onlyRowsAreWrong, type Plan, paidForKinds, wrongRows } from "../../plan/plan.js";
import { planJson } from "../../plan/plan-json.js";
import { planText, rowsTable } from "../../report/plan-table.js";
import { workflowDiagram, workflowText } from "../../report/workflow.js";
import type { Flag } from "../../store/schedules.js";
import { count } from "../../text/amounts.js";
import { jsonPieces } from "../../text/json-stream.js";
import { terminalStyle } from "../../text/table.js";
import { terminalText } from "../../text/terminal.js";
import { manifestPath, sheetOptions } from "../flags/manifest.js";
import { runOptions } from "../flags/run.js";
import type { PlanFlags } from "../flags/setup.js";
import { publishSettings } from "../flags/shared.js";
import { openLog } from "../output/log.js";
import { connect } from "../settings/connect.js";
import { writePlan } from "../settings/saved-plan.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

/** Flags that say how a plan is shown and made, not what it contains. */
const notOfPlan = [
  "--yes",
  "--rows",
  "--graph",
  "--save",
  "--json",
  "--quiet",
  "--log-level",
  "--log-format",
  "--workspace",
  "--base-url",
  "--api-key-file",
];

export async function plan({
  flags,
  args,
  given,
  machine,
}: Call<PlanFlags, { manifest: string }>): Promise<ExitName> {
  const found = workspaceOf(flags, machine, args.manifest);
  refuseUnusable(found);
  // A rehearsal in memory is gone with the command, so a plan that is saved needs a sandbox on disk.
  const workspace = flags.save === undefined ? forLooking(found, flags.sandbox ?? false) : found;
  const manifest = manifestPath(args.manifest, machine);
  const options = {
    workspace,
    manifest,
    connect: () => connect(flags, machine, workspace, { manifest: args.manifest }),
    ...sheetOptions(flags, machine),
    run: runOptions(flags),
    publish: publishSettings(flags),
    clock: machine.clock,
    log: await openLog(flags, machine),
    signal: machine.interrupt(),
  };
  let exit: ExitName = "done";
  await planJob(options, async (made) => {
    const left = flags.skipInvalid ? wrongRows(made.problems) : 0;
    if (left > 0) made.notes.push(`${count(left, "invalid row")} left out`);
    await print(made, flags, machine);
    if (flags.save !== undefined) {
      const how = { manifest, workspace: found.root, sandbox: flags.sandbox ?? false };
      const kept = keptFlags(given, machine);
      writePlan(flags.save, made, { ...how, flags: kept }, machine);
      if (!flags.json) machine.stdout.write(`\nsaved: \`bulkgen run ${flags.save}\` runs it as planned\n`);
    }
    exit = exitOf(made, flags);
  });
  return exit;
}

/** The output folder stays the same wherever the plan is run from. */
function keptFlags(given: readonly Flag[], { cwd }: Machine): Flag[] {
  return given
    .filter(([name]) => !notOfPlan.includes(name))
    .map(
      ([name, value]) =>
        (name === "--out" && value !== undefined ? [name, resolve(cwd, value)] : [name, value]) as Flag,
    );
}

function exitOf({ problems, blockers }: Plan, { skipInvalid, onInsufficient }: PlanFlags): ExitName {
  if (problems.length > 0 && !(skipInvalid && onlyRowsAreWrong(problems))) return "usage";
  const refusing = blockers.filter(
    ({ kind }) => kind !== "insufficient_credits" || onInsufficient === "refuse",
  );
  if (refusing.some(({ kind }) => kind === "insufficient_credits")) return "credits";
  if (refusing.some(({ kind }) => paidForKinds.includes(kind))) return "usage";
  return refusing.length > 0 ? "key" : "done";
}

async function print(made: Plan, flags: PlanFlags, { stdout, stderr, env, cwd }: Machine): Promise<void> {
  if (flags.json) {
    // A reader may be slower than the plan is written.
    for (const piece of jsonPieces(planJson(made, flags.graph !== undefined)))
      await new Promise<void>((done) => stdout.write(piece, () => done()));
    return;
  }
  const style = terminalStyle(stdout, env);
  const isDrawn = flags.graph !== undefined && (made.problems.length === 0 || flags.skipInvalid === true);
  if (isDrawn && flags.graph === "mermaid") {
    // Only the diagram goes to stdout, so that it can be written into a file.
    for (const { message } of made.blockers) stderr.write(`${terminalText(message)}\n`);
    stdout.write(`${workflowDiagram([...made.workflow])}\n`);
    return;
  }
  stdout.write(`${planText(made, cwd, style)}\n`);
  if (isDrawn) stdout.write(`\n${workflowText([...made.workflow], style)}\n`);
  if (flags.rows) stdout.write(`\n${rowsTable(made.items, style)}\n`);
}
