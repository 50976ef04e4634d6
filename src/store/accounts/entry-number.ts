/** The last time that entries are numbered by (UTC ms): beyond it numbers would not be exact. */
const numberedUntilMs = 8e12;

/**
 * The least number of an entry made now. Workspaces know their entries by number, and books may be lost, restored from a
 * copy, or left behind on another machine: in none must a number stand for somebody else's request.
 */
export function firstNumber(now: number): number {
  return Math.min(Math.max(0, now), numberedUntilMs) * 1_000;
}
