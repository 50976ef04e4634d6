/** Marks a test that calls `amount`: `npm run fuzz` runs these alone, of the files that it names. */
export const fuzzTag = { name: "fuzz", description: "tries more cases, or larger ones, in npm run fuzz" };

/**
 * How many cases a test tries, or how large its input is: the full amount in `npm run fuzz`, a tenth of it in its short
 * form, a small one elsewhere.
 */
export function amount(small: number, full: number): number {
  if (process.env["FUZZ"] !== "1") return small;
  return process.env["FUZZ_SHORT"] === "1" ? Math.max(small, Math.floor(full / 10)) : full;
}
