import type { ManualClock } from "../manual-clock.js";
import { isIdle } from "./idle.js";

/** For so many turns of the event loop nothing may be in flight before the time moves. */
const quietTurns = 5;

/**
 * Moves the clock to the next wait whenever nothing real is under way, until the command has ended.
 */
export async function skipWaits<Result>(clock: ManualClock, ended: Promise<Result>): Promise<Result> {
  let over = false;
  const mark = () => {
    over = true;
  };
  void ended.then(mark, mark);
  let quiet = 0;
  while (!over) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    quiet = isIdle() ? quiet + 1 : 0;
    if (quiet < quietTurns || over) continue;
    quiet = 0;
    clock.advanceToNext();
  }
  return ended;
}
