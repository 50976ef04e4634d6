/**
 * Credits inside the sandbox are whole millionths, so that a balance is exact after any number of charges and
 * refunds; only the edges speak in decimal numbers.
 */
const perCredit = 1_000_000;

/** Decimal credits to whole millionths. */
export function toMicro(credits: number): number {
  return Math.round(credits * perCredit);
}

/** Whole millionths to decimal credits. */
export function fromMicro(micro: number): number {
  return micro / perCredit;
}
