import { existsSync } from "node:fs";
import { refuseLost } from "../../job/workspace/history.js";
import { historyOf } from "../../job/workspace/status.js";
import { workspaceExists } from "../../job/workspace/workspace.js";
import type { Machine } from "../../machine.js";
import { type NotBegun, runsReportJson, runsReportText } from "../../report/runs-report.js";
import { flagOf } from "../../schedule/scheduled-run.js";
import { openSchedules } from "../../store/schedules.js";
import type { ReportFlags } from "../flags/setup.js";
import { print } from "../output/print.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";
import { schedulesFile } from "./schedule/place.js";

export async function report({ flags, machine }: Call<ReportFlags>): Promise<undefined> {
  const workspace = workspaceOf(flags, machine);
  refuseLost(workspace);
  const since = flags.since(machine.clock.now());
  const runs = workspaceExists(workspace) ? await historyOf(workspace, machine.clock, since) : [];
  const facts = { since, runs, notBegun: await notBegunSince(since, flags, machine) };
  const document = {
    workspace: workspace.root,
    sandbox: flags.sandbox ?? false,
    ...runsReportJson(facts),
  };
  print(flags, machine, document, (style) => runsReportText(facts, machine.cwd, style));
}

/** The scheduled runs since then that never became a run, rehearsals apart. */
async function notBegunSince(since: number, flags: ReportFlags, machine: Machine): Promise<NotBegun[]> {
  const file = schedulesFile(workspaceOf({ ...flags, sandbox: false }, machine));
  if (!existsSync(file)) return [];
  const schedules = openSchedules(file, machine.clock);
  try {
    const all = await schedules.all();
    const rehearsed = new Set(
      all.filter((schedule) => flagOf(schedule, "--sandbox") !== null).map(({ name }) => name),
    );
    const ended = await schedules.scheduledRunsIn("ended", "waiting", "missed", "skipped");
    return ended.filter(
      ({ dueAt, run, schedule }) =>
        dueAt >= since && run === null && rehearsed.has(schedule) === (flags.sandbox ?? false),
    );
  } finally {
    schedules.close();
  }
}
