import { exitCode, exitNameOf } from "../core/exit.js";
import { type Credits, showCredits, sumOf, toNumber } from "../core/money.js";
import type { ScheduledRun } from "../store/schedules.js";
import { count } from "../text/amounts.js";
import { groupedReasons } from "../text/reasons.js";
import { type Cell, type Column, labelled, paint, table } from "../text/table.js";
import { terminalText } from "../text/terminal.js";
import { plainStyle, type TerminalStyle } from "../text/terminal-style.js";
import { iso, localMinute, localTime } from "../text/times.js";
import type { RunLine, SpentBy } from "../workspace/status.js";
import { creditsText, hintsOf, runJson, starterText, stateText } from "./status.js";

/** What happened in a workspace since a given time, for the morning after scheduled runs. */
export interface RunsReport {
  /** UTC ms. */
  since: number;
  runs: readonly RunLine[];
  /** Scheduled runs that came due and never became a run. */
  notBegun: readonly NotBegun[];
  /** What was spent by the values of a column; absent if nobody asked. */
  by?: { column: string; groups: readonly SpentBy[] };
}

interface NotBegun {
  schedule: string;
  /** UTC ms. */
  dueAt: number;
  /** `missed`, `skipped`, or how its process ended. */
  state: ScheduledRun["state"];
  /** The exit code of its process; null if it had none. */
  exit: number | null;
  note: string | null;
}

/** How many different reasons are named for a run. */
const reasonsMax = 3;

/** The totals first, then one line a run, then what needs a person. For `folder` and `elsewhere` see nextStepFrom. */
export function runsReportText(
  report: RunsReport,
  folder: string,
  style: TerminalStyle = plainStyle,
  elsewhere: string | null = null,
): string {
  const { since, runs, notBegun } = report;
  const total = labelled(
    [
      ["since", localTime(since)],
      ["total", { text: totalsText(report), tone: "strong" }],
      ...(runs.length === 0 ? [] : [["credits", creditsText(totalsOf(runs))] satisfies [string, Cell]]),
    ],
    style,
  );
  const missing = notBegun.map((scheduled): [string, Cell] => [
    scheduled.schedule,
    { text: notBegunText(scheduled), tone: "warning" },
  ]);
  const failures = runs.flatMap(({ run, failures }) => linesOf(run, groupedReasons(failures, reasonsMax)));
  const todo = runs.flatMap((facts) => linesOf(facts.run, hintsOf(facts, folder, elsewhere)));
  return [
    total,
    ...(runs.length === 0 ? [] : ["", runsText(runs, style)]),
    ...(report.by === undefined ? [] : ["", groupsText(report.by, style)]),
    ...section("Not begun", missing, style),
    ...section("Failed", failures, style),
    ...section("To do", todo, style),
  ].join("\n");
}

const groupsShown = 50;

function groupsText({ column, groups }: NonNullable<RunsReport["by"]>, style: TerminalStyle): string {
  if (groups.length === 0) return `nothing was spent, so there is nothing by ${column}`;
  const rows = groups
    .slice(0, groupsShown)
    .map(({ value, tasks, credits }): Cell[] => [value || "(empty)", tasks, showCredits(credits)]);
  const columns: Column[] = [
    { title: column, flexible: true },
    { title: "tasks", align: "right" },
    { title: "credits", align: "right" },
  ];
  const more = groups.length - groupsShown;
  return [table(columns, rows, style), ...(more > 0 ? [`and ${more} more: --json has every one`] : [])].join(
    "\n",
  );
}

function linesOf({ id }: RunLine["run"], lines: readonly string[]): [string, Cell][] {
  return lines.map((line, index) => [index === 0 ? `run ${id}` : "", line]);
}

function section(title: string, lines: readonly (readonly [string, Cell])[], style: TerminalStyle): string[] {
  return lines.length === 0 ? [] : ["", paint(title, "strong", style), labelled(lines, style)];
}

function totalsText({ runs, notBegun }: RunsReport): string {
  if (runs.length === 0 && notBegun.length === 0) return "no runs";
  const { archived, failed, undecided } = totalsOf(runs);
  return [
    count(runs.length, "run"),
    ...(notBegun.length === 0 ? [] : [`${notBegun.length} not begun`]),
    `${archived} archived`,
    ...(failed === 0 ? [] : [`${failed} failed`]),
    ...(undecided === 0 ? [] : [`${undecided} undecided`]),
  ].join(", ");
}

function totalsOf(runs: readonly RunLine[]) {
  const sum = (of: (run: RunLine) => number) => runs.reduce((total, run) => total + of(run), 0);
  const credits = (of: (run: RunLine) => Credits) => sumOf(runs.map(of));
  return {
    archived: sum((run) => run.archived),
    failed: sum((run) => run.failed),
    undecided: sum(undecidedIn),
    spent: credits((run) => run.spent),
    pending: credits((run) => run.pending),
    atService: credits((run) => run.atService),
    tasks: sum((run) => run.tasks),
    inDoubt: sum((run) => run.inDoubt),
    inFlight: sum((run) => run.inFlight),
    lostCredits: credits((run) => run.lostCredits),
  };
}

/** Items that may be paid for again: it is not known yet whether they were charged, or a person has to decide. */
function undecidedIn({ held, unknown }: RunLine): number {
  return held + unknown;
}

const columns: readonly Column[] = [
  { title: "run", align: "right" },
  { title: "started" },
  { title: "job", flexible: true },
  { title: "by", flexible: true },
  { title: "archived", align: "right" },
  { title: "failed", align: "right" },
  { title: "undecided", align: "right" },
  { title: "credits", align: "right" },
  { title: "ended" },
];

/** One line a run, or a few if the terminal is too narrow. */
function runsText(runs: readonly RunLine[], style: TerminalStyle): string {
  const rows = runs.map((facts): Cell[] => {
    const { run, archived, failed } = facts;
    const undecided = undecidedIn(facts);
    return [
      run.id,
      localMinute(run.startedAt),
      run.jobName,
      byText(facts),
      archived,
      failed === 0 ? 0 : { text: String(failed), tone: "bad" },
      undecided === 0 ? 0 : { text: String(undecided), tone: "warning" },
      showCredits(facts.spent) + (facts.pending === 0 ? "" : ` +${showCredits(facts.pending)}`),
      { text: endedText(facts), tone: run.exit === "done" ? "good" : "warning" },
    ];
  });
  const width = Math.max(
    ...table(columns, rows)
      .split("\n")
      .map((line) => line.length),
  );
  if (style.width === null || width <= style.width) return table(columns, rows, style);
  return labelled(runs.flatMap(shortLines), style);
}

function shortLines(facts: RunLine): [string, Cell][] {
  const { run, archived, failed } = facts;
  const undecided = undecidedIn(facts);
  const by = byText(facts);
  const others = `${failed === 0 ? "" : `, ${failed} failed`}${undecided === 0 ? "" : `, ${undecided} undecided`}`;
  return [
    [`run ${run.id}`, `${run.jobName}: ${endedText(facts)}`],
    ["", `${localMinute(run.startedAt)}${by === "" ? "" : ` by ${by}`}`],
    ["", `${archived} archived${others}`],
    ["", `credits: ${creditsText(facts)}`],
  ];
}

function byText({ run: { options } }: RunLine): string {
  return options.beganBy === undefined ? "" : starterText(options.beganBy);
}

function endedText(facts: RunLine): string {
  const { exit } = facts.run;
  return exit === null ? stateText(facts) : exit === "done" ? "done" : `${exit} (exit ${exitCode(exit)})`;
}

function notBegunText({ dueAt, state, exit, note }: NotBegun): string {
  const why = exit === null ? state : (exitNameOf(exit) ?? `exit ${exit}`);
  // What is wrong with a command or a sheet is in the note alone.
  const parts = [why === "usage" && note !== null ? null : why, note].filter((part) => part !== null);
  return terminalText(`due ${localTime(dueAt)}: ${parts.join(": ")}`);
}

/** The report for programs: credits as numbers, times as ISO 8601. */
export function runsReportJson({ since, runs, notBegun, by }: RunsReport) {
  const { archived, failed, undecided, spent, pending, atService, lostCredits } = totalsOf(runs);
  return {
    since: iso(since),
    totals: {
      runs: runs.length,
      notBegun: notBegun.length,
      archived,
      failed,
      undecided,
      credits: {
        spent: toNumber(spent),
        pending: toNumber(pending),
        atService: toNumber(atService),
        lost: toNumber(lostCredits),
      },
    },
    runs: runs.map((run) => ({ ...runJson(run), undecided: undecidedIn(run), failures: [...run.failures] })),
    notBegun: notBegun.map(({ schedule, dueAt, state, exit, note }) => ({
      schedule,
      dueAt: iso(dueAt),
      state,
      exit,
      exitName: exitNameOf(exit),
      note,
    })),
    by: by === undefined ? null : { column: by.column, groups: by.groups.map(groupJson) },
  };
}

function groupJson({ value, tasks, credits }: SpentBy) {
  return { value, tasks, credits: toNumber(credits) };
}
