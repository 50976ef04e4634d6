import { exitCode } from "../core/exit.js";
import { wantedItems } from "../core/item.js";
import { minus, noCredits, showCredits, toNumber } from "../core/money.js";
import type { AfterLeft, Run } from "../core/ports/store.js";
import { count } from "../text/amounts.js";
import { groupedReasons, reasonCharactersMax } from "../text/reasons.js";
import { type Cell, type Column, labelled, type Tone, table } from "../text/table.js";
import { shortText, terminalText, textWidth } from "../text/terminal.js";
import { plainStyle, type TerminalStyle } from "../text/terminal-style.js";
import { iso, isoOrNull, localMinute, localTime } from "../text/times.js";
import { withLineEnds } from "../trust/trust.js";
import { afterText, evidenceJson, evidenceText, reasonLines, waitingJson } from "../workspace/evidence.js";
import { statusCommand } from "../workspace/find-run.js";
import type { SpentIn } from "../workspace/spent.js";
import type { ItemTrouble, RunLine, RunOverview, RunStatus } from "../workspace/status.js";
import { comparedText, forecastText } from "./forecast.js";
import { nextStep, nextStepFrom } from "./next-step.js";
import { shownPath } from "./problem-text.js";
import { reasonText } from "./progress.js";
import { changedFlags } from "./run-options.js";
import { countedStates, stateWords } from "./state-words.js";

/**
 * The state in words: a run whose process is gone has crashed, although its record still says running, and one that made
 * everything that needs no approval was not interrupted. A redo is finished with its variants, and may wait for their approval.
 */
export function stateText({ run, alive, left }: Pick<RunOverview, "run" | "alive" | "left">): string {
  if (run.state === "running" && !alive) return "crashed";
  const isOver = run.state === "interrupted" || run.state === "finished";
  const waits = isOver && run.exit === "held" && (left?.awaiting.length ?? 0) > 0;
  if (waits) return "waits for approval";
  // A decision has given it something to do again.
  return run.state === "interrupted" && run.exit === null && !alive ? "ready to continue" : run.state;
}

/** A run for programs: credits as numbers, times as ISO 8601. */
function overviewJson(facts: RunOverview) {
  const { run, alive, lockOwner, resume } = facts;
  const { id, jobName, manifest, edition, state, options, startedAt, endedAt, exit, ending } = run;
  return {
    run: id,
    job: jobName,
    manifest,
    edition,
    state,
    alive,
    crashed: stateText(facts) === "crashed",
    beganBy: options.beganBy ?? null,
    options: changedFlags(options),
    rebuilt: options.rebuilt ?? false,
    startedAt: iso(startedAt),
    endedAt: isoOrNull(endedAt),
    exit: exit === null ? null : exitCode(exit),
    exitName: exit,
    stops: [...(ending?.reasons ?? [])],
    resumeAt: isoOrNull(ending?.resumeAt ?? null),
    after: ending?.after ?? null,
    resume,
    nextStep: facts.left && nextStep(facts.left),
    lockOwner: lockOwner && { pid: lockOwner.pid, host: lockOwner.host, since: iso(lockOwner.since) },
    credits: {
      spent: toNumber(facts.spent),
      pending: toNumber(facts.pending),
      atService: toNumber(facts.atService),
      lost: toNumber(facts.lostCredits),
    },
    requests: run.requests,
    reason: facts.reason && { ...facts.reason, until: isoOrNull(facts.reason.until) },
  };
}

/** A run of several, with the results of its items. */
export function runJson(facts: RunLine) {
  const { archived, failed, held } = facts;
  return { ...overviewJson(facts), archived, failed, held };
}

/** One run, its items in trouble too. */
export function statusJson(facts: RunStatus) {
  const { counts, results, folder, forecast, endsAt } = facts;
  const trouble = facts.trouble.map(({ rowNumber, rowId, state, reason, evidence, nextAt }) => ({
    rowNumber,
    rowId,
    state,
    reason,
    ...evidenceJson(evidence),
    nextAt: isoOrNull(nextAt),
  }));
  const lost = facts.lost.map(waitingJson);
  return {
    ...overviewJson(facts),
    counts,
    results,
    folder,
    forecast,
    endsAt: isoOrNull(endsAt),
    trouble,
    lost,
  };
}

const columns: readonly Column[] = [
  { title: "run", align: "right" },
  { title: "job", flexible: true },
  { title: "manifest", flexible: true },
  { title: "state" },
  { title: "started" },
  { title: "ended" },
  { title: "archived", align: "right" },
  { title: "failed", align: "right" },
  { title: "held", align: "right" },
  { title: "credits", align: "right" },
  { title: "exit", flexible: true },
];

/**
 * One line for each run, or a few if the terminal is too narrow; then why runs stopped that are not done, and what to
 * do about them. Manifests are named as seen from `folder`; for `elsewhere` see nextStepFrom.
 */
export function runsTable(
  runs: readonly RunLine[],
  folder: string,
  style: TerminalStyle = plainStyle,
  elsewhere: string | null = null,
): string {
  const rows = runs.map(({ run, ...facts }): Cell[] => [
    run.id,
    run.jobName,
    shownPath(run.manifest, folder),
    facts.resume === null
      ? stateText({ run, ...facts })
      : { text: stateText({ run, ...facts }), tone: "warning" },
    localMinute(run.startedAt),
    run.endedAt === null ? "" : localMinute(run.endedAt),
    facts.archived,
    facts.failed === 0 ? 0 : { text: String(facts.failed), tone: "bad" },
    facts.held === 0 ? 0 : { text: String(facts.held), tone: "warning" },
    showCredits(facts.spent) + (facts.pending === 0 ? "" : ` +${showCredits(facts.pending)}`),
    run.exit === null ? "" : `${exitCode(run.exit)} ${run.exit}`,
  ]);
  const width = Math.max(...table(columns, rows).split("\n").map(textWidth));
  if (style.width !== null && width > style.width)
    return labelled(
      runs.flatMap((run) => runLines(run, folder, elsewhere)),
      style,
    );
  const hints = runs.flatMap((run) =>
    hintsOf(run, folder, elsewhere).map((hint) => terminalText(`run ${run.run.id}: ${hint}`)),
  );
  return [table(columns, rows, style), ...hints].join("\n");
}

/** A run on a few short lines. */
function runLines(facts: RunLine, folder: string, elsewhere: string | null): [string, Cell][] {
  const { run } = facts;
  const exit = run.exit === null ? "" : `, exit ${exitCode(run.exit)} ${run.exit}`;
  const ended = run.endedAt === null ? "" : `, ended ${localMinute(run.endedAt)}`;
  const failed = facts.failed === 0 ? "" : `, ${facts.failed} failed`;
  const held = facts.held === 0 ? "" : `, ${facts.held} held`;
  return [
    [`run ${run.id}`, { text: `${run.jobName}: ${stateText(facts)}${exit}`, tone: "strong" }],
    ["", shownPath(run.manifest, folder)],
    ["", `started ${localMinute(run.startedAt)}${ended}`],
    ["", `${facts.archived} archived${failed}${held}`],
    ["", creditsText(facts)],
    ...hintsOf(facts, folder, elsewhere).map((hint): [string, Cell] => ["", hint]),
  ];
}

const shortCharactersMax = 100;

/** Why a run in progress waits; why another one stopped, in short, and what to do about it; nothing if nothing is left to do. */
export function hintsOf(
  { run, left, reason, now }: Pick<RunOverview, "run" | "left" | "reason" | "now">,
  folder: string,
  elsewhere: string | null,
): string[] {
  if (reason !== null) return [`now: ${reasonText(reason, now)}`];
  const next = left && nextStepFrom(left, folder, elsewhere);
  if (next === null) return [];
  const [why] = run.ending?.reasons ?? [];
  return [...(why === undefined ? [] : [`ended early: ${shortText(why, shortCharactersMax)}`]), next];
}

/** What `resume` is about to continue. */
export interface Resumed extends SpentIn {
  run: Run;
  counts: RunStatus["counts"];
}

/** What is resumed, who began it, and what it may still spend. Its manifest is named as seen from `folder`. */
export function resumedText(facts: Resumed, folder: string, style: TerminalStyle = plainStyle): string {
  const { run, counts } = facts;
  const lines: [string, Cell][] = [
    ["resuming", { text: `run ${nameOf(run, folder)}`, tone: "strong" }],
    ...beginningLines(run),
    [
      "items",
      `${counts.archived} of ${wantedItems(counts)} archived, ${counts.planned} ${stateWords.planned}`,
    ],
    ["credits", creditsText({ ...facts, inFlight: 0 })],
  ];
  return labelled(lines, style);
}

function nameOf({ id, jobName, manifest, edition }: Run, folder: string): string {
  return `${id} of ${jobName} (${shownPath(manifest, folder)}${edition === "" ? "" : `, edition ${edition}`})`;
}

/** The schedule or the person that began a run. */
export function starterText({ user, schedule }: NonNullable<Run["options"]["beganBy"]>): string {
  return schedule === undefined ? user : `schedule ${schedule}`;
}

/** Who began a run, where and when, and with which options. */
function beginningLines({ startedAt, options }: Run): [string, Cell][] {
  const { beganBy } = options;
  const by = beganBy === undefined ? "" : ` by ${starterText(beganBy)} on ${beganBy.host}`;
  // A command of several lines would be another one on one line.
  const flags = changedFlags(options, withLineEnds).join(" ");
  if (options.rebuilt === true) {
    const own = options.maxCredits === noCredits ? "it submits nothing without --max-credits" : flags;
    return [
      ["rebuilt", `${localTime(startedAt)} from receipts and archive`],
      ["options", `lost; ${own}`],
    ];
  }
  return [
    ["started", `${localTime(startedAt)}${by}`],
    ...(flags === "" ? [] : [["options", flags] satisfies [string, Cell]]),
  ];
}

/** The requests on record: those of a running process are recorded now and then, those before a rebuild are lost. */
function requestsLine({ requests, state, options }: Run): [string, Cell][] {
  const isPart = state === "running" || options.rebuilt === true;
  if (isPart && requests === 0) return [];
  return [["requests", isPart ? `at least ${requests}` : requests]];
}

/**
 * Only requests that may or may not have been charged are in doubt. A task at the service has a known price and is
 * still coming, and a request in flight is about to be answered.
 */
export function creditsText(facts: Omit<SpentIn, "lost"> & Pick<RunOverview, "inFlight">): string {
  const { spent, pending, atService, tasks, inDoubt, inFlight, lostCredits } = facts;
  const open = tasks === 0 ? "" : `, ${showCredits(atService)} for ${count(tasks, "task")} at the service`;
  const unanswered = [
    ...(inFlight === 0 ? [] : [`${count(inFlight, "request")} in flight`]),
    ...(inDoubt === inFlight ? [] : [`${count(inDoubt - inFlight, "request")} in doubt`]),
  ].join(" and ");
  const doubt =
    unanswered === "" ? "" : `, up to ${showCredits(minus(pending, atService))} for ${unanswered}`;
  const lost = lostCredits === 0 ? "" : `, up to ${showCredits(lostCredits)} lost`;
  return `${showCredits(spent)} spent${open}${doubt}${lost}`;
}

const troubleShown = 20;
const tones: Readonly<Record<string, Tone>> = { failed: "bad" };

/**
 * A run on a few lines, and below them the items in trouble. Its manifest is named as seen from `folder`; for `elsewhere`
 * see nextStepFrom.
 */
export function statusText(
  facts: RunStatus,
  folder: string,
  style: TerminalStyle = plainStyle,
  elsewhere: string | null = null,
): string {
  const { run } = facts;
  const lines: [string, Cell][] = [
    ["run", { text: `${nameOf(run, folder)}: ${stateText(facts)}`, tone: "strong" }],
    ...beginningLines(run),
    ...endText(run),
    ["items", itemsText(facts)],
    ...reasonLine(facts),
    ["credits", creditsText(facts)],
    ...requestsLine(run),
    ...forecastLine(facts),
    ["files", { text: shownPath(facts.folder, folder), file: facts.folder }],
    ...lockOwnerText(facts),
    ...facts.trouble.slice(0, troubleShown).map(troubleText),
  ];
  const more = facts.trouble.length - troubleShown;
  if (more > 0) lines.push(["", `and ${more} more: \`${statusCommand(run)} --json\` has every one`]);
  lines.push(
    ...reasonLines(facts.lost, statusCommand(run)).map((line): [string, Cell] => [
      "lost",
      { text: line, tone: "warning" },
    ]),
  );
  const next = facts.left && nextStepFrom(facts.left, folder, elsewhere);
  if (next !== null) lines.push(["next", next]);
  return labelled(lines, style);
}

/** A later run of the job takes over the items of its rows, including archived ones; variants then belong to no run. */
function itemsText({ run, counts, results }: RunStatus): string {
  const text = countedStates(counts).join(", ");
  if (text !== "" || results === null) return text || "none";
  const left = countedStates(results).join(", ");
  return `a later run of ${run.jobName} followed${left === "" ? "" : `; this one left ${left}`}`;
}

/** The forecast: with the expected end for a run in progress, beside the actual figures for an ended one. */
function forecastLine({ forecast, run, endsAt }: RunStatus): [string, Cell][] {
  const { startedAt, endedAt, requests } = run;
  if (forecast === null || forecast.requests === 0) return [];
  if (endedAt !== null) return [["forecast", comparedText(forecast, { requests, ms: endedAt - startedAt })]];
  const until = endsAt === null ? "" : `; until ${localTime(endsAt)}`;
  return [["forecast", `${forecastText(forecast)}${until}`]];
}

function endText({ endedAt, exit, ending }: Run): [string, Cell][] {
  if (endedAt === null || exit === null) return [];
  return [
    ["ended", `${localTime(endedAt)} as ${exit} (exit ${exitCode(exit)})`],
    // Ctrl-C is both how the run ended and why.
    ...(ending?.reasons ?? []).flatMap((reason): [string, Cell][] =>
      reason === exit ? [] : [["why", reason]],
    ),
    ...(ending?.after === undefined ? [] : afterLeftLines(ending.after)),
  ];
}

/** Reasons that are named before the rest is counted. */
const commandReasonsMax = 4;

/** What is left of the commands after files and after the set, and why. */
export function afterLeftLines({ failed, reasons, left, set, missing = 0 }: AfterLeft): [string, Cell][] {
  const lines: [string, Cell][] = [];
  const tone = "warning";
  if (failed > 0)
    lines.push(
      ["after a file", { text: `the command failed for ${count(failed, "archived file")}`, tone }],
      ...groupedReasons(
        reasons.map(({ rowId, reason }) => ({ rowId, kind: "", reason })),
        commandReasonsMax,
      ).map((line): [string, Cell] => ["", line]),
    );
  if (left > 0)
    lines.push([
      "after a file",
      { text: `the command was not run for ${count(left, "archived file")}`, tone },
    ]);
  if (set !== null) lines.push(["after the set", { text: `the command failed: ${terminalText(set)}`, tone }]);
  if (missing > 0)
    lines.push([
      "after the set",
      {
        text: `the command was not run: ${count(missing, "file of the set is", "files of the set are")} missing on the disk`,
        tone,
      },
    ]);
  return lines;
}

function lockOwnerText({ lockOwner, alive }: RunStatus): [string, Cell][] {
  if (lockOwner === null) return [];
  const who = `process ${lockOwner.pid} on ${lockOwner.host}, since ${localTime(lockOwner.since)}`;
  const what = lockOwner.run === null ? ", preparing a run" : ", for another run";
  return [["locked by", `${who}${alive ? "" : what}`]];
}

function reasonLine({ reason, now }: RunOverview): [string, Cell][] {
  return reason === null ? [] : [["now", { text: reasonText(reason, now), tone: "warning" }]];
}

function troubleText({ state, rowNumber, rowId, reason, evidence, nextAt }: ItemTrouble): [string, Cell] {
  const text = [
    `row ${rowNumber} (${rowId}): ${shortText(reason, reasonCharactersMax)}`,
    ...(evidence === null ? [] : [evidenceText(evidence)]),
    ...(nextAt === null ? [] : [`polled again ${afterText(nextAt)}`]),
  ].join("; ");
  return [state, { text, tone: tones[state] ?? "warning" }];
}
