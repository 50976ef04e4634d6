import { limitsOf } from "../api/plans.js";
import { refuse } from "./answers.js";
import type { AccountRecord, WorldState } from "./state.js";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** The most admissions that any plan has to look back on; older ones need not be kept. */
export const admissionsKept = 10_000;

/**
 * A sliding log: a request passes when fewer than the plan's number of requests passed in the minute and in the day
 * before it. Requests that pass are numbered, so that one lookup of the Nth last answers it, whatever N is. Refused
 * requests leave no trace. Throws 429 with the whole seconds until a request can pass.
 */
export function admit(state: WorldState, account: AccountRecord, now: number): void {
  const { perMinute, perDay } = limitsOf(account.plan);
  const waitMs = Math.max(
    waitFor(state, account, now, perMinute, minuteMs),
    waitFor(state, account, now, perDay, dayMs),
  );
  if (waitMs <= 0) return;
  throw refuse(
    "RATE_LIMITED",
    `The ${account.plan} plan allows ${perMinute} requests a minute and ${perDay} a day.`,
    {
      "Retry-After": String(Math.ceil(waitMs / 1_000)),
    },
  );
}

function waitFor(
  state: WorldState,
  account: AccountRecord,
  now: number,
  limit: number | null,
  windowMs: number,
) {
  if (limit === null || account.admitted < limit) return 0;
  const nthLast = state.admittedAt(account.id, account.admitted - limit + 1);
  return nthLast === undefined ? 0 : nthLast + windowMs - now;
}
