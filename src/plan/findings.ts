import type { Me } from "../api/records.js";
import { inCredits, noCredits, plus, showCredits } from "../core/money.js";
import type { NewItem } from "../core/ports/store.js";
import { lateMsMax, utcTime } from "../core/quota/quota.js";
import { coverageText } from "./cost.js";
import type { Finding, Fit, Money, OnMissing, Requests } from "./plan.js";

/** What stops a run: the subscription, or a balance that is too small. */
export function blockersOf(me: Me, money: Money, fit: Fit): Finding[] {
  const blockers: Finding[] = [];
  if (me.subscription === null) {
    blockers.push({
      kind: "no_subscription",
      message: "The account has no active subscription: choose a plan in your dashboard first.",
    });
  } else if (me.subscription.status === "past_due") {
    blockers.push({
      kind: "past_due",
      message: "The subscription payment is past due: pay it in your dashboard first.",
    });
  }
  // Where a cap ends the run before the balance does, the balance stops nothing.
  const { needed, within, balance } = money;
  if (balance !== null && needed > noCredits && within > balance) {
    blockers.push({
      kind: "insufficient_credits",
      message: `The run needs ${inCredits(needed)} and the balance is ${showCredits(balance)}: ${coverageText(fit)}.`,
      needed,
      balance,
      reaches: fit,
    });
  }
  return blockers;
}

/** What a run copes with, and its user should know. */
export function warningsOf(me: Me, money: Money, requests: Requests): Finding[] {
  const warnings: Finding[] = [];
  if (money.balance === null) {
    const message = "The service does not report the balance, so the run may stop with too few credits.";
    warnings.push({ kind: "untold_balance", message });
  }
  const status = me.subscription?.status;
  if (me.subscription && status === "canceled") {
    const until = me.subscription.current_period_end;
    warnings.push({ kind: "canceled", message: `The subscription is canceled and ends on ${until}.`, until });
  } else if (status !== undefined && status !== "active" && status !== "past_due") {
    const message = `The subscription's status "${status}" is unknown to this version of bulkgen; the run goes on and the service decides.`;
    warnings.push({ kind: "unknown_subscription", message, status });
  }
  warnings.push(...periodWarnings(me, requests));
  const { atLeast, perDay } = requests;
  if (perDay !== null && atLeast > perDay) {
    const message = `The run needs at least ${atLeast} requests and the plan allows ${perDay} in 24 hours, so it will take several days.`;
    warnings.push({ kind: "day_limit", message, atLeast, perDay });
  }
  return warnings;
}

/** A request may arrive after the last look whether it was charged: it counts as proven not charged then, and is sent again. */
export function settlingWarning([, last]: readonly [number, number]): Finding[] {
  if (last >= lateMsMax) return [];
  const [seconds, atLeast] = [last / 1_000, lateMsMax / 1_000];
  const message =
    `--settle-seconds decides ${seconds} s after a lost request whether it was charged, but it may still arrive up to ${atLeast} s later. ` +
    `It could then be paid for twice. Expected at least ${atLeast} as the last value, got ${seconds}.`;
  return [{ kind: "early_settling", message, seconds, atLeast }];
}

/** A period that ends, for good or before the run does. */
function periodWarnings({ subscription }: Me, { finishAt }: Requests): Finding[] {
  if (subscription === null) return [];
  const { current_period_end: until, cancel_at_period_end: ends, status } = subscription;
  const end = Date.parse(until);
  const warnings: Finding[] = [];
  if (ends && status !== "canceled") {
    const message = `The subscription ends with its period, on ${until}, and is not renewed.`;
    warnings.push({ kind: "ends", message, until });
  }
  if (finishAt === null || Number.isNaN(end) || finishAt <= end) return warnings;
  const then =
    ends || status === "canceled"
      ? "items left by then will be refused"
      : "the run continues if the next period is paid";
  const message = `The subscription's period ends on ${until}, and the run takes until about ${utcTime(finishAt)}: ${then}.`;
  return [...warnings, { kind: "period_ends", message, until, finishAt }];
}

/** Archived items whose files are gone, and the ways to have them again. */
export function missingWarning(
  missing: readonly Pick<NewItem, "rowId" | "price">[],
  way: OnMissing,
): Finding[] {
  if (missing.length === 0) return [];
  const items = missing.map(({ rowId }) => rowId);
  const credits = plus(...missing.map(({ price }) => price));
  const named = items.slice(0, namesMax).join(", ");
  const more = items.length > namesMax ? ` and ${items.length - namesMax} more` : "";
  const what = `${missing.length === 1 ? "1 archived item has" : `${missing.length} archived items have`} lost files (${named}${more})`;
  const told = {
    report: `--missing fetch downloads them again at no cost while the service has them, --missing pay makes them again for ${inCredits(credits)}`,
    fetch: "they are downloaded again at no cost",
    pay: `they are made and paid for again: ${inCredits(credits)}`,
  }[way];
  return [{ kind: "missing_files", message: `${what}: ${told}.`, items, credits }];
}

const namesMax = 5;
