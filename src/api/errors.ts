import type { Endpoint } from "./endpoints.js";

/**
 * The error table: every code of the service, and what an answer with it means for a paid request, for a poll and for
 * the run. The client and the run decide by this table; the sandbox answers from it; docs/reference.md prints it.
 *
 * The service does not document the body of an error, so the status alone has to do: all rows of one status mean the
 * same for the request. Only the last two columns depend on the code.
 */
type RunnerAction =
  | "stop: key"
  | "stop: subscription"
  | "stop: credits"
  | "fail the item"
  | "wait and continue"
  | "find out whether it was charged"
  | "keep the task, poll again";

/** What an error answer means. */
export interface ErrorMeaning {
  /**
   * For a paid request. `refused`: not charged, the item stays planned. `rejected`: not charged, the item has failed.
   * `unknown`: it may have been charged.
   */
  submit: "refused" | "rejected" | "unknown";
  /** For a poll. `refused`: it says nothing of the task. `missing`: the task is not known. `unclear`: anything else. */
  poll: "refused" | "missing" | "unclear";
  /** For the run: what stops it. `pause` ends by itself: the quota ledger delays all requests for a while. */
  stop: "key" | "subscription" | "credits" | "pause" | null;
}

/** What stops a run when a request was refused. */
export type Refusal = NonNullable<ErrorMeaning["stop"]>;

export interface ErrorRow extends ErrorMeaning {
  code: string;
  status: number;
  endpoint: Endpoint | "all";
  condition: string;
  /** What the runner does, in words, for docs/reference.md. */
  runner: RunnerAction;
  /** False for errors that the service does not document; the runner handles them anyway. */
  documented: boolean;
  /** All items of the model fail in this way, so they are held back. */
  ofModel: boolean;
  /**
   * The service itself reports that it failed to start the generation. The settings say whether that proves no charge.
   */
  isCompleteError: boolean;
}

const keyRefused = { submit: "refused", poll: "refused", stop: "key" } as const;
const requestWrong = { submit: "rejected", poll: "unclear", stop: null } as const;
const serviceFailed = { submit: "unknown", poll: "unclear", stop: null } as const;

export const errorTable = [
  row("MISSING_API_KEY", 401, "all", "no key was supplied", "stop: key", keyRefused),
  row(
    "INVALID_API_KEY_FORMAT",
    401,
    "all",
    "the key is not svc_ and 32 letters or digits",
    "stop: key",
    keyRefused,
  ),
  row("INVALID_API_KEY", 401, "all", "the key does not exist or was revoked", "stop: key", keyRefused),
  row("SUBSCRIPTION_REQUIRED", 403, "all", "no active subscription", "stop: subscription", {
    submit: "refused",
    poll: "refused",
    stop: "subscription",
  }),
  row("MISSING_MODEL", 400, "generate", "the request names no model", "fail the item", requestWrong),
  row("INVALID_MODEL", 400, "generate", "the model does not exist or is unavailable", "fail the item", {
    ...requestWrong,
    ofModel: true,
  }),
  row(
    "INSUFFICIENT_CREDITS",
    402,
    "generate",
    "the balance is too low for this generation",
    "stop: credits",
    {
      submit: "refused",
      poll: "unclear",
      stop: "credits",
    },
  ),
  row(
    "GENERATION_ERROR",
    500,
    "generate",
    "an internal error while starting the generation",
    "find out whether it was charged",
    { ...serviceFailed, isCompleteError: true },
  ),
  row(
    "TASK_NOT_FOUND",
    404,
    "task",
    "no such task, or it belongs to someone else",
    "keep the task, poll again",
    {
      submit: "rejected",
      poll: "missing",
      stop: null,
    },
  ),
  row("INTERNAL_ERROR", 500, "task", "an internal server error", "keep the task, poll again", serviceFailed),
  row("RATE_LIMITED", 429, "all", "more requests than the plan allows", "wait and continue", {
    submit: "refused",
    poll: "refused",
    stop: "pause",
    documented: false,
  }),
  row("INVALID_REQUEST", 400, "all", "the request itself is malformed or incomplete", "fail the item", {
    ...requestWrong,
    documented: false,
  }),
] as const;

export type ErrorCode = (typeof errorTable)[number]["code"];

type Flags = Partial<Pick<ErrorRow, "documented" | "ofModel" | "isCompleteError">>;

function row<const Code extends string>(
  code: Code,
  status: number,
  endpoint: Endpoint | "all",
  condition: string,
  runner: RunnerAction,
  meaning: ErrorMeaning & Flags,
): ErrorRow & { code: Code } {
  const flags = { documented: true, ofModel: false, isCompleteError: false };
  return { code, status, endpoint, condition, runner, ...flags, ...meaning };
}

/** The row of a code. Throws on a code that is not in the table: only our own code asks. */
export function errorRow(code: ErrorCode): ErrorRow {
  const found = rowOf(code);
  if (!found) throw new Error(`no row for error code ${code}`);
  return found;
}

/** The row of a code that the service sent; undefined for a code that is not in the table. */
export function rowOf(code: string | null | undefined): ErrorRow | undefined {
  return errorTable.find((entry) => entry.code === code);
}

/**
 * Statuses that the service does not document and that, by the rules of HTTP, a server sends instead of carrying a request
 * out: no such address or method, too long, of the wrong kind, not understood, not allowed here. A complete answer with one
 * of them proves that nothing was made or charged, and it is about this request alone. Others of the class prove nothing:
 * 406 may follow the work, 408 and 499 come from timeouts, a 409 may be the answer to a repetition by a proxy, 424 and 425
 * come from services behind the service.
 */
export const refusingStatuses: readonly number[] = [
  405, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 423, 426, 428, 431, 451,
];

/** What an error status means, with any or no error code. */
export function meaningOf(status: number): ErrorMeaning {
  const known = errorTable.find((entry) => entry.status === status);
  return known ?? (refusingStatuses.includes(status) ? requestWrong : serviceFailed);
}

/**
 * Whether an error code is one that the service documents for this stop. A 401, 402 or 403 without it may come from
 * something between this machine and the service, and be about one request.
 */
export function isStated(stop: Refusal, code: string | null): boolean {
  return rowOf(code)?.stop === stop;
}
