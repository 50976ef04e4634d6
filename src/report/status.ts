import { type ExitName, exitCode } from "../core/exit.js";
import { itemStates } from "../core/item.js";
import { localMinute, localTime } from "../core/local-time.js";
import { inCredits, showCredits, toNumber } from "../core/money.js";
import type { Run } from "../core/ports/store.js";
import {
  afterText,
  evidenceJson,
  evidenceText,
  reasonLines,
  waitingJson,
} from "../job/workspace/evidence.js";
import type { ItemTrouble, RunLine, RunOverview, RunStatus } from "../job/workspace/status.js";
import {
  type Cell,
  type Column,
  labelled,
  plainStyle,
  type TerminalStyle,
  type Tone,
  table,
} from "../text/table.js";
import { shortText, textWidth } from "../text/terminal.js";
import { comparedText, forecastText } from "./forecast.js";

/** The state in words: a run whose process is gone has crashed, although its record still says running. */
export function stateText({ state, alive }: Pick<RunOverview, "state" | "alive">): string {
  return state === "running" && !alive ? "crashed" : state;
}

/** A run for programs: credits as numbers, times as ISO 8601. */
export function runJson<Facts extends RunOverview>(facts: Facts): Record<string, unknown> {
  const { spent, pending, lostCredits, lockOwner, startedAt, endedAt, ...rest } = facts;
  return {
    ...rest,
    startedAt: iso(startedAt),
    endedAt: endedAt === null ? null : iso(endedAt),
    crashed: stateText(facts) === "crashed",
    lockOwner: lockOwner && { ...lockOwner, since: iso(lockOwner.since) },
    credits: { spent: toNumber(spent), pending: toNumber(pending), lost: toNumber(lostCredits) },
  };
}

/** One run, its items in trouble too. */
export function statusJson(facts: RunStatus): Record<string, unknown> {
  const trouble = facts.trouble.map(({ evidence, nextAt, ...item }) => ({
    ...item,
    ...evidenceJson(evidence),
    nextAt: nextAt === null ? null : iso(nextAt),
  }));
  return { ...runJson(facts), trouble, lost: facts.lost.map(waitingJson) };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

const columns: readonly Column[] = [
  { title: "run", align: "right" },
  { title: "job", flexible: true },
  { title: "state" },
  { title: "started" },
  { title: "ended" },
  { title: "archived", align: "right" },
  { title: "failed", align: "right" },
  { title: "held", align: "right" },
  { title: "credits", align: "right" },
  { title: "exit", flexible: true },
];

/** One line for each run, or a few where the terminal is too narrow; then how to continue the unfinished ones. */
export function runsTable(runs: readonly RunLine[], style: TerminalStyle = plainStyle): string {
  const rows = runs.map((run): Cell[] => [
    run.run,
    run.job,
    run.resume === null ? stateText(run) : { text: stateText(run), tone: "warning" },
    localMinute(run.startedAt),
    run.endedAt === null ? "" : localMinute(run.endedAt),
    run.archived,
    run.failed === 0 ? 0 : { text: String(run.failed), tone: "bad" },
    run.held === 0 ? 0 : { text: String(run.held), tone: "warning" },
    showCredits(run.spent) + (run.pending === 0 ? "" : ` +${showCredits(run.pending)}`),
    run.exit === null ? "" : `${exitCode(run.exit as ExitName)} ${run.exit}`,
  ]);
  const next = runs.flatMap(({ run, resume }) =>
    resume === null ? [] : [`run ${run}: \`${resume}\` continues it`],
  );
  const width = Math.max(...table(columns, rows).split("\n").map(textWidth));
  const isNarrow = style.width !== null && width > style.width;
  return [isNarrow ? labelled(runs.flatMap(runLines), style) : table(columns, rows, style), ...next].join(
    "\n",
  );
}

/** A run on a few short lines. */
function runLines(run: RunLine): [string, Cell][] {
  const exit = run.exit === null ? "" : `, exit ${exitCode(run.exit as ExitName)} ${run.exit}`;
  const ended = run.endedAt === null ? "" : `, ended ${localMinute(run.endedAt)}`;
  const failed = run.failed === 0 ? "" : `, ${run.failed} failed`;
  const held = run.held === 0 ? "" : `, ${run.held} held`;
  const open = run.pending === 0 ? "" : `, up to ${showCredits(run.pending)} more open`;
  return [
    [`run ${run.run}`, { text: `${run.job}: ${stateText(run)}${exit}`, tone: "strong" }],
    ["", `started ${localMinute(run.startedAt)}${ended}`],
    ["", `${run.archived} archived${failed}${held}`],
    ["", `${inCredits(run.spent)}${open}`],
  ];
}

/** What `resume` is about to continue. */
export interface Resumed extends Pick<RunStatus, "counts" | "spent" | "pending"> {
  run: Run;
}

/** What is resumed, who began it, and what it may still spend. */
export function resumedText(
  { run, counts, spent, pending }: Resumed,
  style: TerminalStyle = plainStyle,
): string {
  const { maxCredits, beganBy } = run.options;
  const all = itemStates.reduce((sum, state) => sum + (state === "dropped" ? 0 : counts[state]), 0);
  const by = beganBy === undefined ? "" : ` by ${beganBy.user} on ${beganBy.host}`;
  const cap = maxCredits === null ? "" : `, cap ${showCredits(maxCredits)}`;
  const open = pending === 0 ? "" : `, up to ${showCredits(pending)} more open`;
  const lines: [string, Cell][] = [
    ["resuming", { text: `run ${run.id} of ${run.jobName} (${run.manifest})`, tone: "strong" }],
    ["begun", `${localTime(run.startedAt)}${by}`],
    ["items", `${counts.archived} of ${all} archived, ${counts.planned} to submit`],
    ["credits", `${showCredits(spent)} spent${open}${cap}`],
  ];
  return labelled(lines, style);
}

const troubleShown = 20;
const reasonCharactersMax = 160;
const tones: Readonly<Record<string, Tone>> = { failed: "bad" };

/** A run on a few lines, and below them the items in trouble. */
export function statusText(facts: RunStatus, style: TerminalStyle = plainStyle): string {
  const counted = itemStates
    .filter((state) => facts.counts[state] > 0)
    .map((state) => `${facts.counts[state]} ${state}`);
  const open = facts.pending === 0 ? "" : `, up to ${showCredits(facts.pending)} more open`;
  const lost = facts.lostCredits === 0 ? "" : `, up to ${showCredits(facts.lostCredits)} lost`;
  const lines: [string, Cell][] = [
    ["run", { text: `${facts.run} of ${facts.job}: ${stateText(facts)}`, tone: "strong" }],
    ["started", `${localTime(facts.startedAt)}`],
    ...endText(facts),
    ["items", counted.join(", ") || "none"],
    ["credits", `${showCredits(facts.spent)} spent${open}${lost}`],
    ["requests", facts.requests],
    ...forecastLine(facts),
    ["files", facts.folder],
    ...lockOwnerText(facts),
    ...facts.trouble.slice(0, troubleShown).map(troubleText),
  ];
  const more = facts.trouble.length - troubleShown;
  if (more > 0) lines.push(["", `and ${more} more: \`bulkgen status --json\` has every one`]);
  lines.push(
    ...reasonLines(facts.lost).map((line): [string, Cell] => ["lost", { text: line, tone: "warning" }]),
  );
  if (facts.resume !== null) lines.push(["next", `\`${facts.resume}\` continues it`]);
  return labelled(lines, style);
}

/** The forecast: with the expected end for a run in progress, beside the actual figures for an ended one. */
function forecastLine({ forecast, startedAt, endedAt, requests }: RunStatus): [string, Cell][] {
  if (forecast === null || forecast.requests === 0) return [];
  if (endedAt !== null) return [["forecast", comparedText(forecast, { requests, ms: endedAt - startedAt })]];
  return [["forecast", `${forecastText(forecast)}; until ${localTime(startedAt + forecast.ms)}`]];
}

function endText({ endedAt, exit }: RunStatus): [string, Cell][] {
  if (endedAt === null || exit === null) return [];
  return [["ended", `${localTime(endedAt)} as ${exit} (exit ${exitCode(exit as ExitName)})`]];
}

function lockOwnerText({ lockOwner, alive }: RunStatus): [string, Cell][] {
  if (lockOwner === null) return [];
  const who = `process ${lockOwner.pid} on ${lockOwner.host}, since ${localTime(lockOwner.since)}`;
  return [["locked by", `${who}${alive ? "" : ", for another run"}`]];
}

function troubleText({ state, rowNumber, rowId, reason, evidence, nextAt }: ItemTrouble): [string, Cell] {
  const text = [
    `row ${rowNumber} (${rowId}): ${shortText(reason, reasonCharactersMax)}`,
    ...(evidence === null ? [] : [evidenceText(evidence)]),
    ...(nextAt === null ? [] : [`polled again ${afterText(nextAt)}`]),
  ].join("; ");
  return [state, { text, tone: tones[state] ?? "warning" }];
}
