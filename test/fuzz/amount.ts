/** How many cases a test tries, or how large its input is: the full amount in `npm run fuzz`, a small one elsewhere. */
export function amount(small: number, full: number): number {
  return process.env["FUZZ"] === "1" ? full : small;
}
