import type { ExitName } from "../../core/exit.js";
import { planJob } from "../../job/run/plan-job.js";
import type { Machine } from "../../machine.js";
import { manifestPath, sheetOptions } from "../../options/manifest.js";
import { afterSettings, runOptions } from "../../options/run.js";
import type { PlanFlags } from "../../options/setup.js";
import { publishSettings } from "../../options/shared.js";
import {
  exitOfRefusal,
  type Finding,
  onlyRowsAreWrong,
  type Plan,
  refusalsOf,
  wrongParts,
} from "../../plan/plan.js";
import { planJson } from "../../plan/plan-json.js";
import { planText, rowsTable } from "../../report/plan-table.js";
import { skippedText } from "../../report/summary.js";
import { workflowDiagram, workflowText } from "../../report/workflow.js";
import type { Flag } from "../../store/schedules.js";
import { jsonPieces } from "../../text/pieces.js";
import { shellWord } from "../../text/shell.js";
import { terminalText } from "../../text/terminal.js";
import { terminalStyle } from "../../text/terminal-style.js";
import type { FolderValue } from "../../trust/trust.js";
import { refuseUnusable } from "../../workspace/state-folder/state-folder.js";
import { forReading } from "../../workspace/workspace.js";
import { agreeToValues } from "../output/agreement.js";
import { openLog } from "../output/log.js";
import { connect } from "../settings/connect.js";
import { flagsToRepeat, flagsToSave, writePlan } from "../settings/saved-plan.js";
import { configFiles } from "../settings/settings.js";
import { waitPrinter } from "../settings/wait-printer.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function plan({
  flags,
  args,
  given,
  machine,
}: Call<PlanFlags, { manifest: string }>): Promise<ExitName> {
  const found = workspaceOf(flags, machine, args.manifest);
  refuseUnusable(found);
  // A rehearsal in memory is gone with the command, so a plan that is saved needs a sandbox on disk.
  const workspace = flags.save === undefined ? forReading(found, flags.sandbox ?? false) : found;
  const manifest = manifestPath(args.manifest, machine);
  const options = {
    workspace,
    manifest,
    connect: () => connect(flags, machine, workspace, { manifest: args.manifest, isBrief: true }),
    ...sheetOptions(flags, machine),
    run: runOptions(flags),
    publish: publishSettings(flags),
    after: afterSettings(flags),
    agreeToForeignUse: async () => flags.acceptForeignUse ?? false,
    agreeTo: (values: readonly FolderValue[]) =>
      agreeToValues(values, workspace, machine, `bulkgen trust ${shellWord(args.manifest)}`),
    clock: machine.clock,
    environment: machine.env,
    log: await openLog(flags, machine),
    signal: machine.interrupt(),
    onWait: waitPrinter(machine),
  };
  if (options.run.archive !== undefined) {
    const { checkCopies } = await import("../../workspace/outputs-place.js");
    await checkCopies(options.run, machine.env);
  }
  let exit: ExitName = "done";
  await planJob(options, async (made) => {
    const left = flags.skipInvalid ? wrongParts(made.problems) : null;
    if (left !== null && left.rows > 0) made.notes.push(`${skippedText(left)} left out`);
    const refusals = refusalsOf(made, flags.onInsufficient);
    await print(made, refusals, flags, machine);
    if (flags.save !== undefined) {
      const how = { manifest, workspace: found.root, sandbox: flags.sandbox ?? false };
      const kept = flagsToSave(given, await configFiles(found.root, machine.env), machine);
      await writePlan(flags.save, made, { ...how, flags: kept }, machine);
      if (!flags.json) saySaved(flags.save, flags, given, machine);
    }
    exit = exitOf(made, refusals, flags);
  });
  return exit;
}

/** Says how the plan is run. The diagram of a workflow has stdout for itself. */
function saySaved(file: string, flags: PlanFlags, given: readonly Flag[], machine: Machine): void {
  const stream = flags.graph === "mermaid" ? machine.stderr : machine.stdout;
  const again = flagsToRepeat(given);
  const hint = again.length === 0 ? "" : `. A plan does not keep ${again.join(", ")}: give it again`;
  stream.write(`\nsaved: \`bulkgen run ${shellWord(file)}\` runs it as planned${hint}\n`);
}

function exitOf({ problems }: Plan, [refusal]: readonly Finding[], { skipInvalid }: PlanFlags): ExitName {
  if (problems.length > 0 && !(skipInvalid && onlyRowsAreWrong(problems))) return "usage";
  return refusal === undefined ? "done" : exitOfRefusal(refusal);
}

async function print(
  made: Plan,
  refusals: readonly Finding[],
  flags: PlanFlags,
  { stdout, stderr, env, cwd }: Machine,
): Promise<void> {
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
  stdout.write(`${planText(made, cwd, style, refusals)}\n`);
  if (isDrawn) stdout.write(`\n${workflowText([...made.workflow], style)}\n`);
  if (flags.rows) stdout.write(`\n${rowsTable(made.items, style)}\n`);
}
