import type { Endpoint } from "./endpoints.js";

/**
 * The error table: every code of the service, where it comes from, and what the runner does about it. The client,
 * the sandbox, the exit codes and the README all read this one.
 */
export type RunnerAction =
  | "stop: key"
  | "stop: subscription"
  | "stop: credits"
  | "fail the item"
  | "wait and go on"
  | "find out whether it was charged"
  | "keep the task, look again";

export interface ErrorRow {
  code: string;
  status: number;
  endpoint: Endpoint | "all";
  condition: string;
  runner: RunnerAction;
  /** False for what the service does not document (the runner copes all the same). */
  documented: boolean;
}

export const errorTable = [
  row("MISSING_API_KEY", 401, "all", "no key was supplied", "stop: key"),
  row("INVALID_API_KEY_FORMAT", 401, "all", "the key does not begin with svc_", "stop: key"),
  row("INVALID_API_KEY", 401, "all", "the key does not exist or was revoked", "stop: key"),
  row("SUBSCRIPTION_REQUIRED", 403, "all", "no active subscription", "stop: subscription"),
  row("MISSING_MODEL", 400, "generate", "the request names no model", "fail the item"),
  row("INVALID_MODEL", 400, "generate", "the model does not exist or is unavailable", "fail the item"),
  row("INSUFFICIENT_CREDITS", 402, "generate", "the balance is too low for this generation", "stop: credits"),
  row(
    "GENERATION_ERROR",
    500,
    "generate",
    "an internal error while starting the generation",
    "find out whether it was charged",
  ),
  row(
    "TASK_NOT_FOUND",
    404,
    "task",
    "no such task, or it belongs to someone else",
    "keep the task, look again",
  ),
  row("INTERNAL_ERROR", 500, "task", "an internal server error", "keep the task, look again"),
  {
    ...row("RATE_LIMITED", 429, "all", "more requests than the plan allows", "wait and go on"),
    documented: false,
  },
  {
    ...row("INVALID_REQUEST", 400, "all", "the request itself is malformed or incomplete", "fail the item"),
    documented: false,
  },
] as const satisfies readonly ErrorRow[];

export type ErrorCode = (typeof errorTable)[number]["code"];

function row<const Code extends string>(
  code: Code,
  status: number,
  endpoint: Endpoint | "all",
  condition: string,
  runner: RunnerAction,
) {
  return { code, status, endpoint, condition, runner, documented: true };
}

/** The row of a code. Throws on a code that is not in the table: only our own code asks. */
export function errorRow(code: ErrorCode): ErrorRow {
  const found = errorTable.find((entry) => entry.code === code);
  if (!found) throw new Error(`no row for error code ${code}`);
  return found;
}
