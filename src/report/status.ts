import type { ItemState } from "../core/item.js";
import { type Credits, toNumber } from "../core/money.js";
import type { Forecast } from "../core/pace/forecast.js";
import { type Evidence, evidenceJson, type Waiting, waitingJson } from "./evidence.js";

/** What is told of every run. Times are UTC ms. */
interface RunFacts {
  run: number;
  job: string;
  state: string;
  /** A process is working on it now. */
  alive: boolean;
  /** The process that holds the workspace now; told of the run that it works on, and of the newest. */
  holder: { pid: number; host: string; since: number } | null;
  startedAt: number;
  endedAt: number | null;
  exit: string | null;
  /** The command that goes on with it; null when it is finished or under way. */
  resume: string | null;
  /** Charged for good. */
  spent: Credits;
  /** Charged, or perhaps to be charged. */
  pending: Credits;
  /** What lost requests cost at most, whose items were submitted again or given up. */
  lostCredits: Credits;
  requests: number;
}

/** An item that did not go as it should. */
export interface Trouble {
  rowNumber: number;
  rowId: string;
  state: string;
  reason: string;
  /** What is on record of its request, where its task may have to be found. */
  evidence: Evidence | null;
  /** When its task is looked at again (UTC ms); null where that is not due by itself. */
  nextAt: number | null;
}

/** A run as `bulkgen status` shows it. */
export interface StatusFacts extends RunFacts {
  counts: Readonly<Record<ItemState, number>>;
  folder: string;
  /** What was expected of the run when it began; null for what was not forecast. */
  forecast: Forecast | null;
  trouble: readonly Trouble[];
  /** Those requests. */
  lost: readonly Waiting[];
}

/** A run as `bulkgen status --all` shows it: items that it left so, of those that took a step in it. */
export interface RunLine extends RunFacts {
  archived: number;
  failed: number;
  held: number;
}

/** The state in words: a run whose process is gone was cut off, whatever it says of itself. */
export function stateText({ state, alive }: Pick<RunFacts, "state" | "alive">): string {
  return state === "running" && !alive ? "cut off" : state;
}

/** UTC, to the minute. */
export function minute(at: number): string {
  return iso(at).slice(0, 16).replace("T", " ");
}

/** The same for programs: credits as numbers, times as ISO 8601. */
export function runJson<Facts extends RunFacts>(facts: Facts): Record<string, unknown> {
  const { spent, pending, lostCredits, holder, startedAt, endedAt, ...rest } = facts;
  return {
    ...rest,
    startedAt: iso(startedAt),
    endedAt: endedAt === null ? null : iso(endedAt),
    cutOff: stateText(facts) === "cut off",
    holder: holder && { ...holder, since: iso(holder.since) },
    credits: { spent: toNumber(spent), pending: toNumber(pending), lost: toNumber(lostCredits) },
  };
}

/** One run, its items in trouble too. */
export function statusJson(facts: StatusFacts): Record<string, unknown> {
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
