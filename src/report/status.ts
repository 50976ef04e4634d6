import { type ItemState, itemStates } from "../core/item.js";
import { type Credits, showCredits, toNumber } from "../core/money.js";
import { shortText, terminalText } from "../core/terminal-text.js";

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
  requests: number;
}

/** A run as `bulkgen status` shows it. */
export interface StatusFacts extends RunFacts {
  counts: Readonly<Record<ItemState, number>>;
  folder: string;
  trouble: readonly { rowNumber: number; rowId: string; state: string; reason: string }[];
}

/** A run as `bulkgen status --all` shows it: items that it left so, of those that took a step in it. */
export interface RunLine extends RunFacts {
  archived: number;
  failed: number;
  held: number;
}

const troubleShown = 20;

/** Loads nothing heavy: status must start fast. */
export function statusText(facts: StatusFacts): string {
  const counted = itemStates
    .filter((state) => facts.counts[state] > 0)
    .map((state) => `${facts.counts[state]} ${state}`);
  const trouble = facts.trouble.slice(0, troubleShown).map((item) => {
    return `  ${item.state}: row ${item.rowNumber} (${terminalText(item.rowId)}): ${shortText(item.reason, 160)}`;
  });
  const more = facts.trouble.length - trouble.length;
  const next = facts.resume === null ? "" : ` (\`${facts.resume}\` goes on)`;
  return [
    `run ${facts.run} of ${terminalText(facts.job)}: ${stateText(facts)}${next}, begun ${minute(facts.startedAt)} UTC${facts.exit === null ? "" : `, ended as ${facts.exit}`}`,
    `  items     ${counted.join(", ") || "none"}`,
    `  credits   ${showCredits(facts.spent)} spent${facts.pending === 0 ? "" : `, up to ${showCredits(facts.pending)} more open`}`,
    `  requests  ${facts.requests}`,
    `  files     ${terminalText(facts.folder)}`,
    ...holderText(facts),
    ...trouble,
    ...(more > 0 ? [`  and ${more} more`] : []),
  ].join("\n");
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
  const { spent, pending, holder, startedAt, endedAt, ...rest } = facts;
  return {
    ...rest,
    startedAt: iso(startedAt),
    endedAt: endedAt === null ? null : iso(endedAt),
    cutOff: stateText(facts) === "cut off",
    holder: holder && { ...holder, since: iso(holder.since) },
    credits: { spent: toNumber(spent), pending: toNumber(pending) },
  };
}

function holderText({ holder, alive }: StatusFacts): string[] {
  if (holder === null) return [];
  const who = `process ${holder.pid} on ${terminalText(holder.host)}, since ${minute(holder.since)} UTC`;
  return [`  held by   ${who}${alive ? "" : ", for another run"}`];
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
