import { type ItemState, itemStates } from "../core/item.js";
import { type Credits, showCredits } from "../core/money.js";
import { shortText, terminalText } from "./terminal-text.js";

/** A run as `bulkgen status` shows it. */
export interface StatusFacts {
  run: number;
  job: string;
  state: string;
  /** A process is working on it now. */
  alive: boolean;
  startedAt: number;
  exit: string | null;
  counts: Readonly<Record<ItemState, number>>;
  spent: Credits;
  pending: Credits;
  requests: number;
  folder: string;
  trouble: readonly { rowNumber: number; rowId: string; state: string; reason: string }[];
}

const troubleShown = 20;

/** Loads nothing heavy: status must start fast. */
export function statusText(facts: StatusFacts): string {
  const counted = itemStates
    .filter((state) => facts.counts[state] > 0)
    .map((state) => `${facts.counts[state]} ${state}`);
  const started = new Date(facts.startedAt).toISOString().slice(0, 16).replace("T", " ");
  const state = facts.state === "running" && !facts.alive ? "cut off (run `bulkgen resume`)" : facts.state;
  const trouble = facts.trouble.slice(0, troubleShown).map((item) => {
    return `  ${item.state}: row ${item.rowNumber} (${terminalText(item.rowId)}): ${shortText(item.reason, 160)}`;
  });
  const more = facts.trouble.length - trouble.length;
  return [
    `run ${facts.run} of ${terminalText(facts.job)}: ${state}, begun ${started} UTC${facts.exit === null ? "" : `, ended as ${facts.exit}`}`,
    `  items     ${counted.join(", ") || "none"}`,
    `  credits   ${showCredits(facts.spent)} spent${facts.pending === 0 ? "" : `, up to ${showCredits(facts.pending)} more open`}`,
    `  requests  ${facts.requests}`,
    `  files     ${terminalText(facts.folder)}`,
    ...trouble,
    ...(more > 0 ? [`  and ${more} more`] : []),
  ].join("\n");
}
