import type { ServedStanding } from "../../api/served-page.js";
import { credits } from "../parts/amounts.js";

/** `16 credits`, or `16 credits (€0.16)` if the models file says what a credit is worth. */
export function price(amount: number, credit: ServedStanding["credit"]): string {
  const worth = money(amount, credit);
  return worth === null ? credits(amount) : `${credits(amount)} (${worth})`;
}

/** `€0.16`; null if the models file does not say what a credit is worth. */
export function money(amount: number, credit: ServedStanding["credit"]): string | null {
  if (credit === null) return null;
  const worth = amount * credit.value;
  // Below a hundredth, two decimals would say that it costs nothing.
  const digits = worth > 0 && worth < 0.01 ? { maximumSignificantDigits: 2 } : {};
  return new Intl.NumberFormat("en-US", { style: "currency", currency: credit.currency, ...digits }).format(
    worth,
  );
}
