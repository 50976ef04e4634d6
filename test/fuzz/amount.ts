/** Marks a test that calls `amount`: `npm run fuzz` runs these alone, of the files that it names. */
export const fuzzTag = { name: "fuzz", description: "tries more cases, or larger ones, in npm run fuzz" };

/** How many cases a test tries, or how large its input is: the full amount in `npm run fuzz`, a small one elsewhere. */
export function amount(small: number, full: number): number {
  return process.env["FUZZ"] === "1" ? full : small;
}
