import type { Refusal } from "../api/errors.js";
import { subscriptionStatuses } from "../api/plans.js";
import { ServiceError } from "../client/service.js";
import { balanceTold, type Credits, inCredits } from "../core/money.js";
import { isLongWait, nextSendAt, waitsFor } from "../core/quota/quota.js";
import { shortText } from "../text/terminal.js";
import { readAccount } from "./gate/balance.js";
import type { Session } from "./ports.js";

/**
 * A 401, 402 or 403 without the service's own error code may be about the account, or about one request: a firewall that
 * dislikes a prompt answers 403, too. The account itself tells: if GET me is answered and nothing is wrong with it, the
 * request is to blame.
 */
export type Blame =
  | { on: "request" }
  /** What the service says of the account. */
  | { on: "account"; told: string }
  /** The account could not be read. */
  | { on: "unclear" };

export async function blameFor(
  session: Pick<Session, "ports" | "gate">,
  stop: Refusal,
  price: Credits | null,
): Promise<Blame> {
  const { ports, gate } = session;
  if (stop === "pause") return { on: "account", told: "" };
  const quota = await ports.accounts.quota(ports.accountId);
  const now = ports.clock.now();
  if (isLongWait(waitsFor(quota, now), nextSendAt(quota, now) - now)) return { on: "unclear" };
  try {
    const { me } = await readAccount(ports, { waits: false });
    gate.reached();
    const told = wrongWith(me, stop, price);
    return told === null ? { on: "request" } : { on: "account", told };
  } catch (error) {
    const isOfAccount =
      error instanceof ServiceError && (error.kind === "key" || error.kind === "subscription");
    return isOfAccount ? { on: "account", told: error.message } : { on: "unclear" };
  }
}

type Account = Awaited<ReturnType<typeof readAccount>>["me"];

/** What is wrong with the account, in the service's words; null if nothing explains the refusal. */
function wrongWith({ subscription, credits }: Account, stop: Refusal, price: Credits | null): string | null {
  if (stop === "credits") {
    const balance = balanceTold(credits.balance);
    if (balance === null) return "the balance is not known";
    return balance < (price ?? 0) ? `${inCredits(balance)} left` : null;
  }
  if (subscription === null) return "subscription: null";
  const { status } = subscription;
  const isEnded = subscriptionStatuses.some((known) => known === status && known !== "active");
  return isEnded ? `subscription status: ${shortText(status, 40)}` : null;
}
