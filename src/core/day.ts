/** An instant that is known only to lie between two times (both UTC ms). */
export interface DaySpan {
  earliest: number;
  latest: number;
}

/** A local day, from its start until the start of the next (both UTC ms). */
export interface Day {
  from: number;
  to: number;
}

/** The day of an instant; where it may be one of several days, from the start of the first to the end of the last. */
export function dayOf({ earliest, latest }: DaySpan): Day {
  return { from: new Date(earliest).setHours(0, 0, 0, 0), to: new Date(latest).setHours(24, 0, 0, 0) };
}
