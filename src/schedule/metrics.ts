import { Gauge, Registry } from "prom-client";
import { exitCode } from "../core/exit.js";
import { itemStates } from "../core/item.js";
import { toNumber } from "../core/money.js";
import { scheduledRunStates } from "../core/scheduled-run.js";
import type { ScheduledRun, Schedules } from "../store/schedules.js";
import type { RunFigures } from "../workspace/figures.js";
import { nextStart } from "./due.js";

/** What the metrics of a daemon are made of, read anew for each scrape. */
export interface MetricsSource {
  schedules: Pick<Schedules, "all" | "scheduledRunsIn">;
  /** The runs of the workspaces that the schedules use: the real one, the sandbox's, or both. */
  runs(): Promise<readonly RunFigures[]>;
  now(): number;
}

/** The metrics as Prometheus reads them. Nothing is counted in memory, so a new daemon goes on with the same figures. */
export async function metricsText({
  schedules,
  runs,
  now,
}: MetricsSource): Promise<{ text: string; type: string }> {
  const registry = new Registry();
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Gauge({ name: `bulkgen_${name}`, help, labelNames, registers: [registry] });
  const all = await schedules.all();
  const past = await schedules.scheduledRunsIn(...scheduledRunStates);
  gauge("schedules", "Schedules of the workspace.", []).set(all.length);
  const due = gauge("schedule_next_due_timestamp_seconds", "When a schedule is due next.", ["schedule"]);
  const paused = gauge("schedule_paused", "1 while none of its runs is started.", ["schedule"]);
  for (const schedule of all) {
    const at = nextStart(schedule, now());
    paused.set({ schedule: schedule.name }, schedule.pausedAt === null ? 0 : 1);
    if (at !== null) due.set({ schedule: schedule.name }, at / 1_000);
  }
  const counted = gauge("scheduled_runs", "Scheduled runs on record, by state.", ["schedule", "state"]);
  for (const { schedule, state } of past) counted.inc({ schedule, state });
  const success = gauge(
    "scheduled_run_last_success_timestamp_seconds",
    "When a scheduled run last ended with exit code 0.",
    ["schedule"],
  );
  const end = gauge("scheduled_run_last_end_timestamp_seconds", "When a scheduled run last ended.", [
    "schedule",
  ]);
  const exit = gauge("scheduled_run_last_exit_code", "The exit code of the last scheduled run that ended.", [
    "schedule",
  ]);
  for (const { schedule, exit: code, endedAt } of past
    .filter(hasEnded)
    .toSorted((a, b) => a.endedAt - b.endedAt)) {
    end.set({ schedule }, endedAt / 1_000);
    if (code !== null) exit.set({ schedule }, code);
    if (code === exitCode("done")) success.set({ schedule }, endedAt / 1_000);
  }
  const labels = ["job", "sandbox"] as const;
  const number = gauge("runs", "Runs of the workspace.", labels);
  const items = gauge("items", "Items of the runs, by the state they are in.", [...labels, "state"]);
  const credits = gauge("credits_spent", "Credits that were charged for good.", labels);
  const requests = gauge("requests", "Requests that the runs have made.", labels);
  for (const { job, sandbox, counts, spent, requests: made } of await runs()) {
    const of = { job, sandbox: String(sandbox) };
    number.inc(of);
    credits.inc(of, toNumber(spent));
    requests.inc(of, made);
    for (const state of itemStates) if (counts[state] > 0) items.inc({ ...of, state }, counts[state]);
  }
  return { text: await registry.metrics(), type: registry.contentType };
}

function hasEnded(run: ScheduledRun): run is ScheduledRun & { endedAt: number } {
  return run.state === "ended" && run.endedAt !== null;
}
