/** An instant that is known so well: not before, and not after (both UTC ms). */
export interface DaySpan {
  earliest: number;
  latest: number;
}

/** A day on the clocks here, from its begin until the next one's (both UTC ms). */
export interface Day {
  from: number;
  to: number;
}

/** The day of an instant; where it may be one of several, from the first one's begin to the last one's end. */
export function dayOf({ earliest, latest }: DaySpan): Day {
  return { from: new Date(earliest).setHours(0, 0, 0, 0), to: new Date(latest).setHours(24, 0, 0, 0) };
}
