import { lookAt, recommendedAt, type Task } from "../pace/poll.js";
import { certainty, isTail, pressureOf, type Work } from "../pace/pressure.js";
import { dayMs, placesWithin } from "../quota/quota.js";
import { isOpen } from "../stop.js";
import type { View } from "./next.js";

/** Which tasks are to be looked at now, which later, and the places that are kept for those. */
export interface Looks {
  /** Items whose look is due, the most promising first. */
  due: number[];
  /** When the others are due (UTC ms), soonest first. */
  later: number[];
  /** How far ahead places are kept for them. */
  holdMs: number;
  /** Every look that is worth anything is made: with more places there would be no more of them. */
  isPlenty: boolean;
  isTail: boolean;
}

/** An unseen model is looked at early once it has this chance, and counts as seen after so many results. */
const scoutThreshold = 0.6;
const scoutsUntil = 3;

export function looksOf(view: View): Looks {
  if (!isOpen("poll", view.stops)) return { due: [], later: [], holdMs: 0, isPlenty: true, isTail: false };
  const work = workOf(view);
  const pressure = pressureOf(work, view.profile);
  const scouts = pressure.most > scoutThreshold ? scoutsOf(view, scoutsUntil) : new Set();
  // When nothing is left to submit and places are plenty, waiting for an unknown model would be all that the run does.
  const last = pressure.isPlenty && work.waiting.length === 0 ? scoutsOf(view, 1) : new Set();
  const due: { id: number; chance: number; isAwaited: boolean }[] = [];
  const later: number[] = [];
  for (const task of view.tasks) {
    if (view.busy.has(task.id)) continue;
    const pace = view.pace(task.group);
    const wanted = scouts.has(task.id) ? scoutThreshold : certainty(pressure, pace);
    const { at: likely, chance } = lookAt(task, pace, wanted, view.now);
    const soonest = last.has(task.id) ? Math.min(likely, recommendedAt(task)) : likely;
    const at = pressure.isShort && task.kind === "overdue" ? putOff(task) : soonest;
    if (isDue({ nextAt: at }, view.now, putOffMsMax))
      due.push({ id: task.id, chance, isAwaited: task.kind === "expired" });
    else later.push(at);
  }
  // What was found finished long ago only waits for its address.
  due.sort((a, b) => Number(b.isAwaited) - Number(a.isAwaited) || b.chance - a.chance);
  return {
    due: due.map(({ id }) => id),
    later: later.sort((a, b) => a - b),
    holdMs: pressure.holdMs,
    isPlenty: pressure.isPlenty,
    isTail: isTail(work),
  };
}

/** How many times as long an overdue task waits while every place is wanted, and the longest that this adds (ms). */
const putOffTimes = 8;
const putOffLongestMs = 3_600_000;

/** An overdue task is put off while every place is wanted: the run does not end before the others anyway. */
function putOff({ nextAt, seenAt }: Task): number {
  if (seenAt === null || seenAt > nextAt) return nextAt;
  return nextAt + Math.min(putOffLongestMs, (putOffTimes - 1) * (nextAt - seenAt));
}

function workOf(view: View): Work {
  const { tasks, quota, now, pace } = view;
  return { tasks, waiting: isOpen("submit", view.stops) ? view.waiting : [], quota, now, pace };
}

/** The oldest task of each model with fewer results than that: its result tells when to look at the others. */
function scoutsOf(view: View, results: number): Set<number> {
  const oldest = new Map<string, Task>();
  for (const task of view.tasks) {
    if (task.kind !== "processing" || view.pace(task.group).finished >= results) continue;
    const known = oldest.get(task.group);
    if (!known || task.since < known.since) oldest.set(task.group, task);
  }
  return new Set([...oldest.values()].map(({ id }) => id));
}

/** Free places that looks will want before others come free. */
export function heldFor(view: View, { later, holdMs }: Looks, free: number, unserved: number): number {
  if (free === Number.POSITIVE_INFINITY) return 0;
  const soon = later.filter((at) => at <= view.now + holdMs);
  const places = placesWithin(
    view.quota,
    view.now,
    soon.map((at) => at - view.now),
  );
  // The n-th look from now must find a place when it is due, whatever is submitted now.
  let kept = unserved;
  for (const [index, within] of places.entries()) {
    const released = within - free;
    kept = Math.max(kept, unserved + index + 1 - Math.max(0, released));
  }
  return kept;
}

/** No look is put off for longer than this. */
const putOffMsMax = 30 * dayMs;

/** Whether its time has come. One that lies further ahead than it can be put off was set before the clock was put back. */
export function isDue({ nextAt }: { nextAt: number }, now: number, longestMs: number): boolean {
  return nextAt <= now || nextAt > now + longestMs;
}
