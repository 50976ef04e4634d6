import type { Refusal } from "../api/errors.js";
import { subscriptionStatuses } from "../api/plans.js";
import type { GenerateOutcome } from "../client/answer.js";
import { ServiceError } from "../client/service.js";
import type { Clock } from "../clock.js";
import { asBalance, type Credits, inCredits } from "../core/money.js";
import { isLongWait, nextSendAt, waitsFor } from "../core/quota/quota.js";
import type { Accounts } from "../store/accounts/accounts.js";
import { shortText } from "../text/terminal.js";
import { type ReadingPorts, readAccount } from "./gate/balance.js";

/**
 * A 401, 402 or 403 without the service's own error code may be about the account, or about one request: a firewall that
 * dislikes a prompt answers 403, too. The account itself tells: if GET me is answered and nothing is wrong with it, the
 * request is to blame.
 */
export type Blame =
  | { on: "request" }
  /** What the service says of the account. */
  | { on: "account"; trouble: string }
  /** The account could not be read. */
  | { on: "unclear" };

interface BlamePorts extends ReadingPorts {
  accounts: Pick<Accounts, "quota">;
  accountId: number;
  clock: Pick<Clock, "now">;
}

export async function blameFor(ports: BlamePorts, stop: Refusal, price: Credits | null): Promise<Blame> {
  const quota = await ports.accounts.quota(ports.accountId);
  const now = ports.clock.now();
  if (isLongWait(waitsFor(quota, now), nextSendAt(quota, now) - now)) return { on: "unclear" };
  try {
    const { me } = await readAccount(ports, { waits: false });
    const trouble = wrongWith(me, stop, price);
    return trouble === null ? { on: "request" } : { on: "account", trouble };
  } catch (error) {
    const isOfAccount =
      error instanceof ServiceError && (error.kind === "key" || error.kind === "subscription");
    return isOfAccount ? { on: "account", trouble: error.message } : { on: "unclear" };
  }
}

/**
 * The answer to a paid request, with what the account says if the answer does not say whom it is about. A balance that
 * covers the price now may have been too low when the request was refused: a refund came, or somebody topped up. So a 402 is
 * put down to the request only the second time; `doubted` are the items that had their first, which is a pause for them.
 */
export async function blamed(
  ports: BlamePorts,
  outcome: GenerateOutcome,
  { id, price }: { id: number; price: Credits },
  doubted: Set<number>,
): Promise<GenerateOutcome> {
  if (outcome.kind !== "refused" || outcome.isStated || outcome.stop === "pause") return outcome;
  const blame = await blameFor(ports, outcome.stop, price);
  const { status, code, message } = outcome;
  if (blame.on === "request" && outcome.stop === "credits" && !doubted.has(id)) {
    doubted.add(id);
    return { ...outcome, stop: "pause" };
  }
  if (blame.on === "request") return { kind: "rejected", status, code, message };
  if (blame.on === "unclear") return outcome;
  return { ...outcome, message: message === null ? blame.trouble : `${message}; ${blame.trouble}` };
}

type Account = Awaited<ReturnType<typeof readAccount>>["me"];

/** What is wrong with the account, in the service's words; null if nothing explains the refusal. */
function wrongWith({ subscription, credits }: Account, stop: Refusal, price: Credits | null): string | null {
  if (stop === "credits") {
    const balance = asBalance(credits.balance);
    if (balance === null) return "the balance is not known";
    return balance < (price ?? 0) ? `${inCredits(balance)} left` : null;
  }
  if (subscription === null) return "subscription: null";
  const { status } = subscription;
  const isEnded = subscriptionStatuses.some((known) => known === status && known !== "active");
  return isEnded ? `subscription status: ${shortText(status, 40)}` : null;
}
