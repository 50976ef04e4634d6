import { subscribe } from "node:diagnostics_channel";
import type { ManualClock } from "../manual-clock.js";

/** HTTP requests of this process that have no answer yet. Every command in this process sends through undici. */
let inFlight = 0;
subscribe("undici:request:create", () => {
  inFlight++;
});
for (const end of ["undici:request:trailers", "undici:request:error"]) {
  subscribe(end, () => {
    inFlight--;
  });
}

/** For so many turns of the event loop nothing may be in flight before the time moves. */
const quietTurns = 5;

/**
 * Moves the clock to the next wait whenever no request is in flight, until the command has ended. While a request is in
 * flight the time stands still, or its own timeout would end it.
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
    quiet = inFlight === 0 ? quiet + 1 : 0;
    if (quiet < quietTurns || over) continue;
    quiet = 0;
    clock.advanceToNext();
  }
  return ended;
}
