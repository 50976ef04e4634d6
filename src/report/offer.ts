import { type Credits, inCredits, showCredits } from "../core/money.js";
import { terminalText } from "../text/terminal.js";
import { count } from "./amounts.js";

const itemsShown = 20;

/** What is to be paid for before a retry or a redo: each item with its price, and the sum. */
export function offerText(
  what: string,
  items: readonly { rowId: string; price: Credits }[],
  sum: Credits,
): string {
  const lines = items
    .slice(0, itemsShown)
    .map((item) => `- ${terminalText(item.rowId)}: ${showCredits(item.price)}`);
  const more = items.length - lines.length;
  const total = `${count(items.length, "item")} to be ${what}, ${inCredits(sum)}`;
  return [total, ...lines, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}
