import type { Me } from "../api/records.js";
import { minus, noCredits, plus, showCredits } from "../core/money.js";
import type { NewItem } from "../core/store.js";
import type { Finding, Fit, Money, OnMissing, Requests } from "./plan.js";

/** What stops a run: the subscription, or a balance that is too small. */
export function blockersOf(me: Me, money: Money, fit: Fit): Finding[] {
  const blockers: Finding[] = [];
  if (me.subscription === null) {
    blockers.push({
      kind: "no_subscription",
      message: "The account has no active subscription: choose a plan first.",
    });
  } else if (me.subscription.status === "past_due") {
    blockers.push({ kind: "past_due", message: "The subscription's payment is past due: settle it first." });
  }
  // Where the cap ends the run before the balance does, the balance stops nothing.
  const { needed, balance, maxCredits, spent } = money;
  const wanted = maxCredits === null ? needed : Math.min(needed, Math.max(0, minus(maxCredits, spent)));
  if (needed > noCredits && wanted > balance) {
    blockers.push({
      kind: "insufficient_credits",
      message: `The run needs ${showCredits(needed)} credits and the balance is ${showCredits(balance)}: ${reach(fit)}.`,
      needed,
      balance,
      reaches: fit,
    });
  }
  return blockers;
}

/** What a run copes with, and its user should know. */
export function warningsOf(me: Me, money: Money, fit: Fit, requests: Requests): Finding[] {
  const warnings: Finding[] = [];
  const status = me.subscription?.status;
  if (me.subscription && status === "canceled") {
    const until = me.subscription.current_period_end;
    warnings.push({ kind: "canceled", message: `The subscription is canceled and ends on ${until}.`, until });
  } else if (status !== undefined && status !== "active" && status !== "past_due") {
    const message = `The subscription's status "${status}" is not known here; the service will judge.`;
    warnings.push({ kind: "unknown_subscription", message, status });
  }
  const { needed, maxCredits, spent } = money;
  if (maxCredits !== null && needed > minus(maxCredits, spent)) {
    const message = `The run needs ${showCredits(needed)} credits and may spend ${showCredits(minus(maxCredits, spent))}: ${reach(fit)}.`;
    warnings.push({ kind: "over_cap", message, needed, maxCredits, reaches: fit });
  }
  const { atLeast, perDay } = requests;
  if (perDay !== null && atLeast > perDay) {
    const message = `The run needs at least ${atLeast} requests and the plan allows ${perDay} in 24 hours: it takes days.`;
    warnings.push({ kind: "day_limit", message, atLeast, perDay });
  }
  return warnings;
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
    report: `--missing fetch gets them again for no credits while the service has them, --missing pay makes them anew for ${showCredits(credits)} credits`,
    fetch: "they are fetched again, for no credits",
    pay: `they are made and paid for again, for ${showCredits(credits)} credits`,
  }[way];
  return [{ kind: "missing_files", message: `${what}: ${told}.`, items, credits }];
}

const namesMax = 5;

function reach(fit: Fit): string {
  if (fit.rowNumber === null) return "it does not pay for the first item";
  const items = fit.items === 1 ? "1 item" : `${fit.items} items`;
  return `it reaches for ${items}, up to row ${fit.rowNumber} (${fit.rowId})`;
}
