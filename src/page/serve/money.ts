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
  const { value, currency } = credit;
  const format = new Intl.NumberFormat("en-US", {
    style: "currency",
    currency,
    maximumSignificantDigits: 15,
  });
  const worth = amount * value;
  // Below a hundredth, two decimals would say that it costs nothing.
  const isSmall = worth > 0 && worth < 0.01;
  return isSmall
    ? format.format(Number(worth.toPrecision(2)))
    : new Intl.NumberFormat("en-US", { style: "currency", currency }).format(worth);
}
