import { z } from "zod";
import { notificationEvents } from "../core/notification.js";
import { missedChoices, scheduledRunStates } from "../core/scheduled-run.js";
import { setting } from "./service.js";
import { count, credits, exit, exitName, flag, runNumber, sandbox, text, time } from "./values.js";

const results = {
  run: runNumber.nullable().describe("the run's number in its workspace; null before it is known"),
  archived: count("items").nullable(),
  failed: count("items").nullable(),
  held: count("items").nullable(),
  credits: credits("charged for good in the run; null before it is known").nullable(),
};

const scheduledRun = z.strictObject({
  dueAt: time("when it was due; when it was started, if by hand"),
  state: z.enum(scheduledRunStates),
  startedAt: time("when its process was started").nullable(),
  endedAt: time("when it ended").nullable(),
  resumeAt: time("when it continues without a person").nullable(),
  exit: exit.nullable().describe("the exit code of its process; null if there was none"),
  exitName: exitName.nullable(),
  ...results,
  losses: count("how often a signal or a defect ended its process"),
  note: text("its result in one line").nullable(),
});

export const schedule = z.strictObject({
  name: text("the schedule's name"),
  manifest: text("relative to the workspace, or absolute"),
  cron: text("minute hour day month weekday"),
  zone: text("the time zone of `cron`"),
  missed: z.enum(missedChoices).describe("what happens to runs that were due while the daemon was off"),
  pausedAt: time("since when none of its runs is started; null while they are").nullable(),
  nextAt: time("when its next run is started; null: never, or not while it is paused").nullable(),
  edition: text("the edition that this run makes; null: new rows only").nullable(),
  until: time("when this run stops submitting").nullable(),
  settings: z.array(setting).describe("the settings of its runs"),
  scheduledRuns: z.array(scheduledRun).describe("the last ten, newest first"),
});

export const removed = z.strictObject({ removed: text("the schedule's name") });

export const startedByHand = z.strictObject({
  schedule: text("the schedule's name"),
  exit: exit.nullable().describe("the exit code of its process; null if a signal ended it"),
  exitName: exitName.nullable(),
  ...results,
  note: text("its result in one line"),
});

export const daemon = z.strictObject({
  url: text("the address of /healthz"),
  metrics: text("the address of /metrics; null without --metrics").nullable(),
});

export const startUp = z.strictObject({
  systemd: text("the text of a systemd service"),
  cron: text("a line for crontab"),
  path: text("the first line of a crontab of your own, by which cron finds bulkgen and Node"),
});

const total = (what: string) => count(what).nullable();

/** Flat, because a command gets the same as variables. */
export const notification = z.strictObject({
  event: z.enum(notificationEvents).describe("how the run ended, or what was noticed"),
  summary: text("one line for people"),
  why: text("why the run ended before its items did, or could not start").nullable(),
  failures: text("the most frequent reasons of failed and held items, with the first ids").nullable(),
  exit: exit.nullable().describe("the exit code; null if there was no run, or if it is in progress"),
  host: text("the machine"),
  workspace: text("the workspace's folder there"),
  sandbox,
  schedule: text("the schedule's name").nullable(),
  due: time("when the scheduled run was due").nullable(),
  run: runNumber.nullable(),
  job: text("the job's name").nullable(),
  items: total("items of the run"),
  archived: total("items"),
  failed: total("items"),
  held: total("items"),
  creditsSpent: credits("charged for good").nullable(),
  creditsPending: credits("charged, or possibly charged: in flight or held").nullable(),
  creditsLeft: credits("the balance, from GET me").nullable(),
  folder: text("the job's folder, or its address in the bucket that alone keeps the files").nullable(),
  next: text("what to do now").nullable(),
});

/** The facts of a notification, flat, for every format; null if unknown. */
export type Notification = z.output<typeof notification>;

export const health = z.strictObject({
  ok: flag("the daemon works"),
  trouble: text("why it does not").nullable(),
  schedules: count("schedules of the workspace"),
  paused: z.array(z.string()).describe("the schedules that are paused"),
  running: z.array(z.string()),
  next: z.strictObject({ schedule: z.string(), dueAt: time("when it is due") }).nullable(),
  last: z
    .strictObject({
      schedule: z.string(),
      dueAt: time("when it was due"),
      endedAt: time("when it ended"),
      exit: exit.nullable().describe("the exit code of its process; null if a signal ended it"),
      exitName: exitName.nullable(),
      note: text("its result in one line").nullable(),
    })
    .nullable()
    .describe("the scheduled run that ended last; null if none has"),
});
/** What `/healthz` answers. */
export type Health = z.output<typeof health>;
