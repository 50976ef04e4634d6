import type { Clock } from "../clock.js";
import { exitNameOf } from "../core/exit.js";
import { asCredits, inCredits, toNumber } from "../core/money.js";
import type { Schedule, ScheduledRun } from "../store/schedules.js";
import { duration } from "../text/amounts.js";
import { type Cell, labelled, paint, table } from "../text/table.js";
import { textWidth } from "../text/terminal.js";
import { plainStyle, type TerminalStyle } from "../text/terminal-style.js";
import { iso, isoOrNull } from "../text/times.js";
import { localText, nextDue, nextStart, timeIn } from "./due.js";
import { flagOf, isWaitingStuck, scheduledEdition, scheduledEnd } from "./scheduled-run.js";

/** A setting of the scheduled run, and where it comes from. */
interface ScheduleSetting {
  name: string;
  value: string;
  from: string;
}

/** A schedule with its settings and its latest runs. */
export interface UpcomingRun {
  schedule: Schedule;
  /** Flags override the environment, which overrides configuration files. */
  settings: readonly ScheduleSetting[];
  scheduledRuns: readonly ScheduledRun[];
  /** This user has added it on this machine, or has agreed to it. */
  isAgreed: boolean;
}

const comingMax = 3;

export function upcomingText(
  { schedule, settings, scheduledRuns }: UpcomingRun,
  clock: Clock,
  style = plainStyle,
): string {
  const { zone } = schedule;
  const coming: number[] = [];
  for (let at = nextStart(schedule, clock.now()); at !== null && coming.length < comingMax; ) {
    coming.push(at);
    at = nextDue(schedule, at);
  }
  const [next] = coming;
  const value = (name: string) => settings.find((setting) => setting.name === name)?.value ?? null;
  const address = value("base-url");
  const lines: [string, Cell][] = [
    ["reads", schedule.manifest],
    ["due", `${schedule.cron} in ${zone}`],
  ];
  if (schedule.pausedAt !== null) lines.push(["paused", { text: pausedText(schedule), tone: "warning" }]);
  if (next !== undefined) {
    lines.push(["next", `${localText(next, zone)}, in ${duration(next - clock.now())}`]);
    if (coming.length > 1)
      lines.push([
        "then",
        coming
          .slice(1)
          .map((at) => localText(at, zone))
          .join(", "),
      ]);
    lines.push(["makes", editionText(schedule, next)], ["ends", whenItEnds(schedule, next, value)]);
  }
  lines.push(
    ...(address === null ? [] : [["service", address] as [string, Cell]]),
    ["spends", capText(value, isOneEdition(schedule))],
    ["credits", insufficient[value("on-insufficient") ?? "refuse"] ?? ""],
    ["day limit", dayLimit[value("on-daily-limit") ?? "stop"] ?? ""],
    ["failures", failureText(value)],
    ["overlap", "a run that comes due while the previous one is in progress is skipped, with a notification"],
    ["missed", missed[schedule.missed]],
    ["notifies", notifyText(value)],
    ["last", scheduledRuns[0] ? scheduledRunText(scheduledRuns[0], zone, clock.now()) : "no run yet"],
  );
  const from = settings.filter(({ from }) => from !== "default").map(settingText);
  const title = paint(`${schedule.name}${value("sandbox") === null ? "" : " (sandbox)"}`, "strong", style);
  return [title, labelled(lines, style), ...(from.length === 0 ? [] : ["Settings:", ...from])].join("\n");
}

function pausedText({ name, pausedAt, zone }: Schedule): string {
  const since = pausedAt === null ? "" : `since ${localText(pausedAt, zone)}; `;
  return `${since}\`bulkgen schedule resume ${name}\` starts its runs again`;
}

function settingText({ name, value, from }: ScheduleSetting): string {
  return `  ${name}${value === "" ? "" : ` ${value}`} (${from})`;
}

/** Whether a scheduled run continues the job's run if that is unfinished, rather than making everything again. */
function isOneEdition(schedule: Schedule): boolean {
  return flagOf(schedule, "--fresh") === null && flagOf(schedule, "--edition") === null;
}

function editionText(schedule: Schedule, dueAt: number): string {
  const edition = scheduledEdition(schedule, dueAt);
  if (edition === null) return "new rows of the manifest; archived items are not paid again";
  return `all items again, once, as edition ${edition}`;
}

function whenItEnds(schedule: Schedule, dueAt: number, value: (name: string) => string | null): string {
  const end = scheduledEnd(schedule, dueAt);
  const most = value("max-duration");
  const after = [
    ...(end === null ? [] : [`${timeIn(end, schedule.zone).time} (${localText(end, schedule.zone)})`]),
    ...(most === null ? [] : [`${most} of work`]),
  ];
  if (after.length === 0) return "when all items are done: no --until, no --max-duration";
  return `submits nothing after ${after.join(" or ")}; tasks submitted by then are still collected`;
}

/** The setting's own text where it is not an amount. */
function creditsSet(value: string): string {
  const amount = asCredits(Number(value));
  return amount === null ? `${value} credits` : inCredits(amount);
}

function capText(value: (name: string) => string | null, oneEdition: boolean): string {
  const shared = oneEdition ? ", also when a later scheduled run continues it" : "";
  const caps = [
    ["max-price", (most: string) => `nothing if a run's price is above ${creditsSet(most)}`],
    ["max-credits", (most: string) => `at most ${creditsSet(most)} a run${shared}`],
    ["max-credits-per-model", (most: string) => `by model at most ${most}`],
    ["keep-credits", (least: string) => `never below ${creditsSet(least)} of balance`],
    [
      "max-credits-per-day",
      (most: string) => `at most ${creditsSet(most)} a day over all runs of the account`,
    ],
  ] as const;
  const set = caps.flatMap(([name, words]) => {
    const found = value(name);
    return found === null ? [] : [words(found)];
  });
  return set.length === 0 ? "as much as the plan of the run says: no cap is set" : set.join("; ");
}

const insufficient: Readonly<Record<string, string>> = {
  refuse: "if the balance does not cover the plan, nothing is submitted",
  fit: "if the balance does not cover the plan, the items it covers are made",
  stop: "stops when the balance is used up",
  wait: "waits for more credits when the balance is used up",
};

const dayLimit: Readonly<Record<string, string>> = {
  stop: "stops when the day's requests are used up, and continues automatically when they come back",
  wait: "waits when the day's requests are used up",
};

const missed: Readonly<Record<Schedule["missed"], string>> = {
  once: "missed runs are caught up once, with the latest one",
  skip: "missed runs are left out, with a notification",
};

function failureText(value: (name: string) => string | null): string {
  const most = value("max-failures");
  const retries = value("retries") ?? "1";
  return `failures at the provider are retried ${retries === "1" ? "once" : `${retries} times`}; ${most === null ? "any number may fail" : `stops submitting once ${most} failed`}`;
}

function notifyText(value: (name: string) => string | null): string {
  const targets = [value("notify"), value("notify-command") === null ? null : "a command"].filter(Boolean);
  return targets.length === 0 ? "no one: no --notify, no --notify-command" : targets.join(", ");
}

/** When each schedule is due next, and how its last run ended: in one line, or a few if the terminal is too narrow. */
export function schedulesTable(
  all: readonly UpcomingRun[],
  clock: Clock,
  style: TerminalStyle = plainStyle,
): string {
  const facts = all.map(({ schedule, scheduledRuns }) => {
    const next = nextStart(schedule, clock.now());
    const [run] = scheduledRuns;
    const last: Cell = run
      ? { text: scheduledRunText(run, schedule.zone, clock.now()), tone: wentWell(run) ? "good" : "warning" }
      : "";
    return { ...schedule, next: next === null ? neverText(schedule) : localText(next, schedule.zone), last };
  });
  const columns = [
    { title: "schedule" },
    { title: "manifest", flexible: true },
    { title: "due" },
    { title: "next", flexible: true },
    { title: "last", flexible: true },
  ];
  const rows = facts.map(({ name, manifest, cron, next, last }) => [name, manifest, cron, next, last]);
  const width = Math.max(...table(columns, rows).split("\n").map(textWidth));
  if (style.width === null || width <= style.width) return table(columns, rows, style);
  return facts
    .map(({ name, manifest, cron, zone, next, last }) => {
      const lines: [string, Cell][] = [
        ["reads", manifest],
        ["due", `${cron} in ${zone}`],
        ["next", next],
        ["last", last === "" ? "no run yet" : last],
      ];
      return [paint(name, "strong", style), labelled(lines, style)].join("\n");
    })
    .join("\n\n");
}

function neverText({ pausedAt, zone }: Schedule): string {
  return pausedAt === null ? "never" : `paused since ${localText(pausedAt, zone)}`;
}

function wentWell(scheduledRun: ScheduledRun): boolean {
  const { state, exit } = scheduledRun;
  if (isWaitingStuck(scheduledRun)) return false;
  return state === "running" || state === "waiting" || (state === "ended" && exit === 0);
}

/** A scheduled run in one line. */
function scheduledRunText(scheduledRun: ScheduledRun, zone: string, now: number): string {
  const due = localText(scheduledRun.dueAt, zone);
  const note = scheduledRun.note === null ? "" : `: ${scheduledRun.note}`;
  if (isWaitingStuck(scheduledRun) && scheduledRun.resumeAt !== null)
    return `${due}: run ${scheduledRun.run} cannot be continued${note} (exit ${scheduledRun.exit}); tried again at ${localText(scheduledRun.resumeAt, zone)}`;
  if (scheduledRun.state === "waiting" && scheduledRun.resumeAt !== null)
    return `${due}: ${continuesText(scheduledRun.resumeAt, zone, now)}${note}`;
  if (scheduledRun.state !== "ended") return `${due}: ${scheduledRun.state}${note}`;
  const { exit } = scheduledRun;
  const name = exitNameOf(exit) ?? "lost";
  const ended = exit === null || exit === 0 ? name : `${name} (exit ${exit})`;
  const spent = scheduledRun.credits === null ? "" : `, ${inCredits(scheduledRun.credits)}`;
  return `${due}: ${ended}${note}${spent}`;
}

/** A time that has passed waits for a daemon alone. */
function continuesText(at: number, zone: string, now: number): string {
  return at > now ? `continues at ${localText(at, zone)}` : "continues as soon as a daemon runs";
}

/** A schedule as JSON: times in ISO 8601, credits as numbers. */
export function listedSchedule({ schedule, settings, scheduledRuns }: UpcomingRun, now: number) {
  const { name, manifest, cron, zone, missed, pausedAt } = schedule;
  const next = nextStart(schedule, now);
  return {
    name,
    manifest,
    cron,
    zone,
    missed,
    pausedAt: isoOrNull(pausedAt),
    nextAt: isoOrNull(next),
    edition: next === null ? null : scheduledEdition(schedule, next),
    until: next === null ? null : isoOrNull(scheduledEnd(schedule, next)),
    settings,
    scheduledRuns: scheduledRuns.map(listedRun),
  };
}

function listedRun(scheduledRun: ScheduledRun) {
  const { dueAt, state, startedAt, endedAt, resumeAt, exit, run, credits, losses, note } = scheduledRun;
  const { archived, failed, held } = scheduledRun;
  return {
    dueAt: iso(dueAt),
    state,
    startedAt: isoOrNull(startedAt),
    endedAt: isoOrNull(endedAt),
    resumeAt: isoOrNull(resumeAt),
    exit,
    exitName: exitNameOf(exit),
    run,
    archived,
    failed,
    held,
    credits: credits === null ? null : toNumber(credits),
    losses,
    note,
  };
}
