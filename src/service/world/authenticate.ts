import type { Endpoint } from "../../api/endpoints.js";
import { isKeyForm } from "../../api/key.js";
import { refuse, type WorldRequest } from "../answers/answers.js";
import type { AccountRecord, KeyRecord, WorldState } from "../state/state.js";
import { keyHash } from "../state/state.js";
import type { Switches } from "../state/switches.js";

export interface AuthenticatedCaller {
  key: KeyRecord;
  account: AccountRecord;
}

/**
 * Identifies the caller. Errors are checked in this order: no key, wrong form, unknown or revoked. When both headers are sent,
 * Authorization counts, being the recommended one.
 */
export function authenticate(state: WorldState, request: WorldRequest): AuthenticatedCaller {
  const presented = presentedKey(request);
  if (presented === "") {
    throw refuse(
      "MISSING_API_KEY",
      "No API key was sent. Use Authorization: Bearer <key> or X-API-Key: <key>.",
    );
  }
  if (!isKeyForm(presented)) {
    throw refuse("INVALID_API_KEY_FORMAT", "An API key is svc_ followed by 32 letters or digits.");
  }
  const key = state.keyByHash(keyHash(presented));
  const account = key && key.revokedAt === null ? state.account(key.accountId) : undefined;
  if (!key || !account) throw refuse("INVALID_API_KEY", "The API key does not exist or was revoked.");
  return { key, account };
}

function presentedKey(request: WorldRequest): string {
  const bearer = /^bearer\s+(.*)$/i.exec(request.headers["authorization"] ?? "");
  return (bearer?.[1] ?? request.headers["x-api-key"] ?? "").trim();
}

/** Throws 403 unless the account's subscription allows this endpoint at `now`. */
export function requireSubscription(
  switches: Switches["subscription"],
  endpoint: Endpoint,
  account: AccountRecord,
  now: number,
): void {
  const { neededFor } = switches;
  const needed =
    neededFor === "all" || (neededFor === "all-but-me" ? endpoint !== "me" : endpoint === "generate");
  if (!needed || isGood(switches, account, now)) return;
  throw refuse(
    "SUBSCRIPTION_REQUIRED",
    "This needs an active subscription: activate one in the dashboard, or with bulkgen sandbox account --subscription active.",
  );
}

/** Whether the account's subscription can be used at `now`. */
export function isGood(switches: Switches["subscription"], account: AccountRecord, now: number): boolean {
  switch (account.subscriptionStatus) {
    case "active":
      return true;
    case "canceled":
      return switches.canceledIsGood && now < account.periodEnd;
    case "past_due":
      return switches.pastDueIsGood;
    case null:
      return false;
  }
}
