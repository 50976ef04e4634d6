import type { Clock } from "../clock.js";
import { type ExitName, exitCode } from "../core/exit.js";
import { type ItemState, wantedItems } from "../core/item.js";
import { showCredits, toNumber } from "../core/money.js";
import type { Run } from "../core/ports/store.js";
import type { RunSummary } from "../job/run/closing.js";
import type { Outcome } from "../job/run/run-job.js";
import { count, duration, fileSize } from "../text/amounts.js";
import { groupedReasons, type ItemReason, someOf } from "../text/reasons.js";
import { type Cell, labelled, paint, type Tone, table, wrapped } from "../text/table.js";
import { terminalText } from "../text/terminal.js";
import { plainStyle, type TerminalStyle } from "../text/terminal-style.js";
import { isoOrNull } from "../text/times.js";
import { blockedIn } from "../workspace/blocked.js";
import {
  evidenceLines,
  tasksKnown,
  type WaitingItem,
  waitingIn,
  waitingJson,
} from "../workspace/evidence.js";
import { statusCommand } from "../workspace/find-run.js";
import { type LeftToDo, leftToDo } from "../workspace/left-to-do.js";
import { outputsPlace } from "../workspace/outputs-place.js";
import { spentIn } from "../workspace/spent.js";
import { failuresOf } from "../workspace/status.js";
import { comparedText } from "./forecast.js";
import { nextStep as nextStepOf } from "./next-step.js";
import { shownPath } from "./problem-text.js";
import { stateWords } from "./state-words.js";
import { afterLeftLines, creditsText as spentText } from "./status.js";

const states: readonly [ItemState, Tone | null][] = [
  ["failed", "bad"],
  ["held", "warning"],
  ["unknown", "warning"],
  ["overdue", "warning"],
  ["processing", null],
  ["submitting", null],
  ["ready", null],
  ["planned", null],
  ["blocked", "warning"],
  ["dropped", "dim"],
];

const stateExplanations: Readonly<Partial<Record<ItemState, string>>> = {
  held: "possibly charged, waiting for your decision",
  unknown: "not yet known whether charged",
  overdue: "still at the service after 10 minutes; never submitted again",
  blocked: "not submitted, waiting for something",
  dropped: "not in the manifest, skipped, or cancelled",
};

const heldPaid = "paid for, waiting for your decision";

/** Reasons that are named before the rest is counted. */
const reasonsMax = 8;

/** The result of a run that has just ended, and what is left to do. Reads the open workspace. */
export async function summaryOf(
  { execution, opened, startedAt, skipped, before }: Outcome,
  clock: Clock,
): Promise<{ facts: RunSummary; left: LeftToDo }> {
  const { run, exit, counts, reasons, balance, lastBalance, creditCheck } = execution;
  const unfinished = exit === "unfinished";
  const items = await opened.store.items(run.id, ["failed", "held", "unknown", "overdue"]);
  const left = await leftToDo(opened.store, run, opened.workspace, items);
  const { nextPollAt } = left;
  const facts: RunSummary = {
    run: run.id,
    sandbox: run.options.sandbox,
    job: run.jobName,
    exit,
    counts,
    skipped,
    before,
    failures: failuresOf(items),
    held: await waitingIn(opened.store, items, "held"),
    unknown: await waitingIn(opened.store, items, "unknown"),
    overdue: await waitingIn(opened.store, items, "overdue"),
    blocked: await blockedIn(opened.store, run.id),
    awaiting: left.awaiting,
    nextPollAt,
    resumeAt: unfinished ? (execution.resumeAt ?? nextPollAt) : null,
    stops: reasons,
    ...(await spentIn(opened.store, run.id)),
    left: balance,
    lastLeft: lastBalance,
    creditCheck,
    requests: run.requests,
    // This process saw only a part of a continued run.
    forecast: run.startedAt >= startedAt ? (run.options.forecast ?? null) : null,
    elapsedMs: clock.now() - startedAt,
    ranMs: (run.endedAt ?? clock.now()) - run.startedAt,
    ...(await opened.store.filesOf(run.id)),
    folder: outputsPlace(run),
    nextStep: nextStepOf(left),
    look: null,
    after: execution.after,
  };
  return { facts, left };
}

/** The closing summary for people. The run's folder is named as seen from `cwd`. */
export function summarise(
  facts: RunSummary,
  style: TerminalStyle = plainStyle,
  cwd: string | null = null,
): string {
  const lines: [string, Cell][] = [["archived", archived(facts)]];
  const { skipped } = facts;
  if (skipped) {
    const text = `${skippedText(skipped)}, listed in ${terminalText(skipped.file)}`;
    lines.push(["left out", { text, tone: "warning" }]);
  }
  for (const [state, tone] of states) {
    const number = facts.counts[state] ?? 0;
    if (number === 0) continue;
    const said = state === "held" && tasksKnown(facts.held) === "all" ? heldPaid : stateExplanations[state];
    const text = said === undefined ? String(number) : `${number}, ${said}`;
    lines.push([stateWords[state], tone === null ? text : { text, tone }]);
    if (state === "failed") lines.push(...grouped(facts.failures));
    if (state === "unknown") lines.push(...waiting(facts, facts.unknown));
    if (state === "held") lines.push(...waiting(facts, facts.held));
    if (state === "overdue") lines.push(...waiting(facts, facts.overdue));
    if (state === "blocked")
      lines.push(...grouped(facts.blocked.map(({ rowId, cause }) => ({ rowId, kind: "", reason: cause }))));
  }
  if (facts.awaiting.length > 0) {
    const text = `${facts.awaiting.length}, archived, waiting for your approval`;
    lines.push(["to approve", { text, tone: "warning" }]);
    lines.push(["", `look at the files of ${someOf(facts.awaiting)}`]);
  }
  if (facts.lost.length > 0) {
    const text = `${count(facts.lost.length, "request")}, possibly charged, task id never received`;
    lines.push(["lost", { text, tone: "warning" }], ...waiting(facts, facts.lost));
  }
  lines.push(
    ["credits", creditsText(facts)],
    ...creditCheckLines(facts),
    ["requests", requestsText(facts)],
    ["time", duration(facts.elapsedMs)],
    ...forecastLines(facts),
    ["files", filesText(facts)],
    ...afterLines(facts.after),
    ["folder", { text: cwd === null ? facts.folder : shownPath(facts.folder, cwd), file: facts.folder }],
    ...(facts.look === null ? [] : [["look", `\`${facts.look}\``] as [string, Cell]]),
  );
  const title = paint(`${terminalText(facts.job)}, run ${facts.run}`, "strong", style);
  const after = [...facts.stops.map((stop) => `Ended early: ${stop}`), ...nextStep(facts)];
  return [title, labelled(lines, style), ...after.map((text) => wrapped(text, style))].join("\n");
}

/** The summary of a run for programs: credits as numbers, sizes in bytes, times in milliseconds. */
export function summaryJson(facts: RunSummary) {
  const { run, job, exit, counts, skipped, before, failures, blocked, awaiting, stops, forecast } = facts;
  const { creditCheck, left, requests, elapsedMs, files, bytes, folder } = facts;
  return {
    run,
    job,
    exit: exitCode(exit),
    exitName: exit,
    counts,
    skipped,
    before,
    failures,
    held: facts.held.map(waitingJson),
    unknown: facts.unknown.map(waitingJson),
    overdue: facts.overdue.map(waitingJson),
    lost: facts.lost.map(waitingJson),
    blocked,
    awaiting,
    nextPollAt: isoOrNull(facts.nextPollAt),
    resumeAt: isoOrNull(facts.resumeAt),
    stops,
    credits: {
      spent: toNumber(facts.spent),
      pending: toNumber(facts.pending),
      lost: toNumber(facts.lostCredits),
      left: left === null ? null : toNumber(left),
      counted: creditCheck === null ? null : toNumber(creditCheck.counted),
      known: creditCheck === null ? null : toNumber(creditCheck.known),
    },
    requests,
    requestsPerItem: requestsPerItem(facts),
    forecast,
    elapsedMs,
    files,
    bytes,
    folder,
    after: facts.after,
    nextStep: facts.nextStep,
  };
}

function archived({ counts, before }: RunSummary): Cell {
  const all = wantedItems(counts);
  const paid =
    before === 0 ? "" : `, ${before === counts.archived ? "all" : before} of them before, not paid again`;
  const text = `${counts.archived ?? 0} of ${count(all, "item")}${paid}`;
  return counts.archived === all && all > 0 ? { text, tone: "good" } : text;
}

/** Why items wait, and the evidence to find each at the service. */
function waiting({ run, sandbox }: RunSummary, items: readonly WaitingItem[]): [string, Cell][] {
  const status = statusCommand({ id: run, options: { sandbox } });
  return [
    ...grouped(items.map(({ rowId, reason }) => ({ rowId, reason, kind: "" }))),
    ...evidenceLines(items, status).map((line): [string, Cell] => ["", line]),
  ];
}

function grouped(items: readonly ItemReason[]): [string, Cell][] {
  return groupedReasons(items, reasonsMax).map((line) => ["", line]);
}

function creditsText(facts: RunSummary): string {
  const { left, lastLeft } = facts;
  const spent = spentText({ ...facts, inFlight: 0 });
  if (left !== null) return `${spent}, ${showCredits(left)} left`;
  return lastLeft === null ? spent : `${spent}, about ${showCredits(lastLeft)} left`;
}

/** Nothing if the key's counter moved by exactly what the items cost. */
function creditCheckLines({ creditCheck }: RunSummary): [string, Cell][] {
  if (creditCheck === null || creditCheck.counted === creditCheck.known) return [];
  const { counted, known } = creditCheck;
  const text = `the service counts ${showCredits(counted)} used, bulkgen counts ${showCredits(known)}; usual reasons: an undecided request, or somebody else using this key`;
  return [["credit check", { text, tone: "warning" }]];
}

function forecastLines({ forecast, requests, ranMs }: RunSummary): [string, Cell][] {
  if (forecast === null || forecast.requests === 0) return [];
  return [["forecast", comparedText(forecast, { requests, ms: ranMs })]];
}

/** What became of the commands after files and the set. */
function afterLines(after: RunSummary["after"]): [string, Cell][] {
  if (after === null) return [];
  const { done, setDone, setWaits } = after;
  const did = [
    ...(done > 0 ? [`the command after a file ran for ${count(done, "file")}`] : []),
    ...(setDone ? ["the command after the set ran"] : []),
  ];
  return [
    ...(did.length === 0 ? [] : [["after", did.join("; ")] as [string, Cell]]),
    ...(setWaits === null
      ? []
      : [["after the set", `the command was not run: ${setWaits}`] satisfies [string, Cell]]),
    ...afterLeftLines(after),
  ];
}

/** The files of this run alone. */
function filesText({ files, bytes, before }: RunSummary): string {
  if (files === 0) return before > 0 ? "none new" : "none";
  return `${count(files, "file")}, ${fileSize(bytes)}`;
}

function requestsText(facts: RunSummary): string {
  const each = requestsPerItem(facts);
  return each === null ? String(facts.requests) : `${facts.requests}, ${each} for each archived item`;
}

/** Null if this run archived nothing. */
function requestsPerItem({ requests, made }: RunSummary): number | null {
  return made === 0 ? null : Math.round((requests / made) * 10) / 10;
}

function nextStep(facts: RunSummary): string[] {
  return facts.nextStep === null ? [] : [`Next: ${facts.nextStep}`];
}

/** One of several runs that were continued one after another. */
export interface ResumedRun extends Pick<RunSummary, "counts" | "spent"> {
  run: Run;
  exit: ExitName;
  /** Null if it was not continued. */
  facts: RunSummary | null;
  /** Why it was not. */
  message: string | null;
}

/** How the runs ended; `left` are those that were not begun. */
export function resumedRunsText(
  ends: readonly ResumedRun[],
  left: readonly Run[],
  style: TerminalStyle = plainStyle,
): string {
  const numbers = ["run", "archived", "failed", "held", "credits"] as const;
  const columns = [
    { title: numbers[0], align: "right" as const },
    { title: "job", flexible: true },
    ...numbers.slice(1).map((title) => ({ title, align: "right" as const })),
    { title: "ended", flexible: true },
  ];
  const rows = ends.map(({ run, exit, counts, spent }): Cell[] => {
    const archived = `${counts.archived} of ${wantedItems(counts)}`;
    const end = { text: endWords(exit), tone: exit === "done" ? ("good" as const) : ("warning" as const) };
    const job = terminalText(run.jobName);
    return [run.id, job, archived, counts.failed, counts.held, showCredits(spent), end];
  });
  const after = ends.flatMap(({ run, facts, message }) => {
    const next = message ?? (facts?.nextStep == null ? null : `next: ${facts.nextStep}`);
    return next === null ? [] : [`run ${run.id}: ${next}`];
  });
  const unbegun =
    left.length === 0 ? [] : [`Not continued: ${left.map(({ id }) => `run ${id}`).join(", ")}.`];
  return [table(columns, rows, style), ...[...after, ...unbegun].map((text) => wrapped(text, style))].join(
    "\n",
  );
}

function endWords(exit: ExitName): string {
  return exit === "done" ? exit : `${exit} (exit ${exitCode(exit)})`;
}

export function resumedJson(exit: ExitName, ends: readonly ResumedRun[], left: readonly Run[]) {
  return {
    exit: exitCode(exit),
    exitName: exit,
    runs: ends.map(({ run, exit, counts, spent, facts, message }) => ({
      run: run.id,
      job: run.jobName,
      exit: exitCode(exit),
      exitName: exit,
      items: wantedItems(counts),
      archived: counts.archived,
      failed: counts.failed,
      held: counts.held,
      spent: toNumber(spent),
      nextStep: facts?.nextStep ?? null,
      message,
    })),
    left: left.map(({ id }) => id),
  };
}

/** What --skip-invalid leaves out. */
export function skippedText({ rows, combinations }: { rows: number; combinations: number }): string {
  const row = count(rows, "invalid row");
  return combinations > rows ? `${count(combinations, "combination")} of ${row}` : row;
}
