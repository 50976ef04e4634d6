import type { Digest } from "./problem.js";

/** Exit codes of every command, and the one that a run with several reasons ends with. */
export const exitCodes = [
  { code: 0, name: "done", meaning: "all archived" },
  { code: 1, name: "crash", meaning: "a defect in bulkgen; nothing paid is lost" },
  { code: 2, name: "usage", meaning: "usage, manifest, or no consent; nothing was sent" },
  { code: 3, name: "key", meaning: "the key or the subscription was refused" },
  { code: 4, name: "unreachable", meaning: "the service is unreachable" },
  { code: 5, name: "failed", meaning: "finished, with failed items or commands after files" },
  { code: 6, name: "cap", meaning: "a cap was reached" },
  { code: 7, name: "credits", meaning: "out of credits" },
  { code: 8, name: "unfinished", meaning: "unfinished, resume later (says when)" },
  { code: 9, name: "locked", meaning: "another run is using the workspace; nothing was sent" },
  { code: 10, name: "held", meaning: "items are held, wait for approval, or are blocked until you decide" },
  {
    code: 130,
    name: "interrupted",
    meaning: "interrupted or cancelled; submitted tasks keep running, resume collects them",
  },
] as const;

export type ExitName = (typeof exitCodes)[number]["name"];

/** The order in which reasons win. */
const precedence: readonly ExitName[] = [
  "crash",
  "interrupted",
  "usage",
  "locked",
  "key",
  "unreachable",
  "credits",
  "held",
  "cap",
  "unfinished",
  "failed",
];

/** The reason that decides the exit code: the first by precedence, or `done` when there is none. */
export function weightiest(reasons: Iterable<ExitName>): ExitName {
  const given = new Set(reasons);
  return precedence.find((name) => given.has(name)) ?? "done";
}

export function exitCode(name: ExitName): number {
  const row = exitCodes.find((entry) => entry.name === name);
  if (!row) throw new Error(`no exit code named ${name}`);
  return row.code;
}

/** Null without a code, and for one that is not ours, such as that of a process that a signal ended. */
export function exitNameOf(code: number | null): ExitName | null {
  return exitCodes.find((entry) => entry.code === code)?.name ?? null;
}

/**
 * Ends a command before or instead of its work: an exit code and a message in whole lines. `cause` is the ServiceError
 * behind it, if a request failed.
 */
export class EarlyExit extends Error {
  override readonly name = "EarlyExit";
  constructor(
    readonly exit: ExitName,
    message: string,
    /** The manifest's problems, if they are the reason. */
    readonly problems: Digest | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** What a command with `--json` prints that has nothing else to print: why it did not do its work. */
export interface RefusedCommand {
  exit: number;
  exitName: ExitName;
  /** `manifest` if the rows have problems. */
  reason: ExitName | "manifest";
  /** What happened, why, and what to do, for people. */
  message: string;
  /** The command to type now, if there is one. */
  next: string | null;
}

/** Whether a document that a command printed says why it did not do its work. */
export function isRefusal(document: unknown): document is RefusedCommand {
  if (typeof document !== "object" || document === null) return false;
  const keys = ["exit", "exitName", "reason", "message", "next"];
  return Object.keys(document).length === keys.length && keys.every((key) => key in document);
}
