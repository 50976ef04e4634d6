import { asNumber } from "../api/values.js";

/**
 * Credits are decimal numbers on the wire. Inside they are whole millionths of a credit, so that sums and
 * comparisons are exact: 0.1 + 0.2 is 0.3 here. A safe integer holds nine thousand million credits.
 */
export type Credits = number & { readonly unit: "millionths of a credit" };

const scale = 1_000_000;

export const noCredits = 0 as Credits;

/** From a number on the wire, in credits. Throws on what is not a finite number in the safe range. */
export function credits(value: number): Credits {
  const amount = asCredits(value);
  if (amount === null) throw new RangeError(`not an amount of credits: ${value}`);
  return amount;
}

/** An amount from any value on the wire; null if it is not an amount, or cannot be represented exactly. */
export function asCredits(value: unknown): Credits | null {
  const scaled = Math.round(asNumber(value) * scale);
  if (!Number.isSafeInteger(scaled)) return null;
  // `-0` would print and compare as another number than 0.
  return (scaled === 0 ? 0 : scaled) as Credits;
}

/** A charge from the wire: a negative one is ignored, or it would raise a cap by credits that were never returned. */
export function asCharge(value: unknown): Credits | null {
  const charge = asCredits(value);
  return charge === null || charge < 0 ? null : charge;
}

/** A balance from the wire: one too large to represent counts as the largest amount. */
export function asBalance(value: unknown): Credits | null {
  return asNumber(value) > balanceMost ? credits(balanceMost) : asCredits(value);
}

const balanceMost = 9_000_000_000;

export function plus(...amounts: Credits[]): Credits {
  return sumOf(amounts);
}

/** Of any number of amounts: a call takes some hundred thousand arguments at most. */
export function sumOf(amounts: readonly Credits[]): Credits {
  return amounts.reduce((sum, amount) => sum + amount, 0) as Credits;
}

export function minus(from: Credits, amount: Credits): Credits {
  return (from - amount) as Credits;
}

export function times(amount: Credits, count: number): Credits {
  return (amount * count) as Credits;
}

/** The amount as a plain number of credits, for JSON. */
export function toNumber(amount: Credits): number {
  return amount / scale;
}

/** The amount as people write it: at most six decimals, no trailing zeros. */
export function showCredits(amount: Credits): string {
  const sign = amount < 0 ? "-" : "";
  const whole = Math.abs(amount);
  const decimals = String(whole % scale)
    .padStart(6, "0")
    .replace(/0+$/, "");
  return `${sign}${Math.floor(whole / scale)}${decimals === "" ? "" : `.${decimals}`}`;
}

/** The amount in a sentence: `1 credit`, `0.5 credits`. */
export function inCredits(amount: Credits): string {
  return `${showCredits(amount)} ${amount === scale ? "credit" : "credits"}`;
}

/** What something costs, behind a comma: `2 credits`, `at no cost`. */
export function priceText(amount: Credits): string {
  return amount === noCredits ? "at no cost" : inCredits(amount);
}
