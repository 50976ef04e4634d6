import { existsSync } from "node:fs";
import type { Machine } from "../../machine.js";
import type { ReportFlags } from "../../options/setup.js";
import { runsReportJson, runsReportText } from "../../report/runs-report.js";
import { dueKey, dueOf } from "../../schedule/due-runs.js";
import { flagOf } from "../../schedule/scheduled-run.js";
import { openSchedules, type ScheduledRun } from "../../store/schedules.js";
import { noRunsText, refuseLost } from "../../workspace/history.js";
import { historyOf, spentBy } from "../../workspace/status.js";
import { workspaceExists } from "../../workspace/workspace.js";
import { print } from "../output/print.js";
import { schedulesFile } from "../settings/brought.js";
import { elsewhere, workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function report({ flags, machine }: Call<ReportFlags>): Promise<undefined> {
  const workspace = workspaceOf(flags, machine);
  refuseLost(workspace);
  const since = flags.since(machine.clock.now());
  const runs = workspaceExists(workspace) ? await historyOf(workspace, machine.clock, since) : [];
  const begun = new Set(runs.map((run) => dueOf(run)));
  const scheduled = await scheduledSince(since, flags, machine);
  const notBegun = scheduled.filter(
    ({ schedule, dueAt, run }) => run === null && !begun.has(dueKey(schedule, dueAt)),
  );
  const { by: column } = flags;
  const by =
    column === undefined
      ? {}
      : {
          by: {
            column,
            groups: await spentBy(
              workspace,
              machine.clock,
              runs.map(({ run }) => run.id),
              column,
            ),
          },
        };
  const facts = { since, runs, notBegun, ...by };
  const document = {
    workspace: workspace.root,
    sandbox: flags.sandbox ?? false,
    ...runsReportJson(facts),
  };
  const isUnused = scheduled.length === 0 && !workspaceExists(workspace);
  print(flags, machine, "report", document, (style) =>
    isUnused
      ? noRunsText(workspace)
      : runsReportText(facts, machine.cwd, style, elsewhere(workspace, flags.sandbox ?? false, machine)),
  );
}

/** The scheduled runs that came due since then and are not in progress, rehearsals apart. */
async function scheduledSince(since: number, flags: ReportFlags, machine: Machine): Promise<ScheduledRun[]> {
  const file = schedulesFile(workspaceOf({ ...flags, sandbox: false }, machine));
  if (!existsSync(file)) return [];
  const schedules = openSchedules(file, machine.clock);
  try {
    const all = await schedules.all();
    const rehearsed = new Set(
      all.filter((schedule) => flagOf(schedule, "--sandbox") !== null).map(({ name }) => name),
    );
    // A schedule that was removed does not say any more what it was: its runs are in both reports.
    const known = new Set(all.map(({ name }) => name));
    const belongs = (schedule: string) =>
      !known.has(schedule) || rehearsed.has(schedule) === (flags.sandbox ?? false);
    const ended = await schedules.scheduledRunsIn("ended", "waiting", "missed", "skipped");
    return ended.filter(({ dueAt, schedule }) => dueAt >= since && belongs(schedule));
  } finally {
    schedules.close();
  }
}
