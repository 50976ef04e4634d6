import type { ExitName } from "./exit.js";

/**
 * What can end a run early, as data: which kinds of step each reason stops, and its exit code.
 * Polls and downloads stay open wherever they can: what was paid for is fetched even when nothing new may be bought.
 */
export const stopTable = {
  interrupted: { closes: ["submit", "poll", "download"], exit: "interrupted" },
  paused: { closes: ["submit", "poll", "download"], exit: "unfinished" },
  cancelled: { closes: ["submit"], exit: "interrupted" },
  key: { closes: ["submit", "poll"], exit: "key" },
  subscription: { closes: ["submit", "poll"], exit: "key" },
  unreachable: { closes: ["submit", "poll"], exit: "unreachable" },
  /** The counters needed to settle a paid request cannot be read, and nothing is bought until they can. */
  unread: { closes: ["submit"], exit: "unreachable" },
  /** Only paid items are collected: for a repair of the archive, or after a cancel. */
  collect: { closes: ["submit"], exit: "done" },
  /** Buying needs a person's agreement, and nobody could be asked. */
  agreement: { closes: ["submit"], exit: "held" },
  credits: { closes: ["submit"], exit: "credits" },
  cap: { closes: ["submit"], exit: "cap" },
  /** What a command may add by --max-price. */
  price: { closes: ["submit"], exit: "cap" },
  keep: { closes: ["submit"], exit: "cap" },
  daily: { closes: ["submit"], exit: "cap" },
  failures: { closes: ["submit"], exit: "cap" },
  time: { closes: ["submit"], exit: "unfinished" },
  day: { closes: ["submit", "poll"], exit: "unfinished" },
  reserve: { closes: ["submit"], exit: "unfinished" },
  /** The service asked for a long pause. */
  silence: { closes: ["submit", "poll"], exit: "unfinished" },
} as const satisfies Record<string, { closes: readonly StepKind[]; exit: ExitName }>;

export type StepKind = "submit" | "poll" | "download";
export type StopKind = keyof typeof stopTable;

export interface Stop {
  kind: StopKind;
  /** One line for people: what happened and what to do next. */
  message: string;
}

/** Stops that are lifted once more credits are left than when they were reached. */
export const capStops: readonly StopKind[] = ["cap", "price", "keep", "daily"];

/** Whether this kind of step is still allowed by all stops. */
export function isOpen(step: StepKind, stops: readonly Stop[]): boolean {
  return !stops.some((stop) => (stopTable[stop.kind].closes as readonly StepKind[]).includes(step));
}
