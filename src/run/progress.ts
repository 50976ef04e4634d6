import type { Decision, View } from "../core/next/next.js";
import type { Quota } from "../core/quota/quota.js";
import { isOpen, type Stop } from "../core/stop.js";
import type { Session } from "./session.js";
import type { Hold } from "./settling.js";

/** Where a run stands at one turn of its loop. */
export interface Progress {
  counts: View["counts"];
  quota: Quota;
  waiting: Decision["waiting"];
  /** Until when nothing happens by itself (UTC ms), when something is waited for. */
  until: number | null;
  stops: readonly Stop[];
  diskTrouble: string | null;
  /** What is to be found out before anything else is submitted. */
  hold: Hold | null;
}

export function progressOf(
  { stops, refusedByDisk: diskTrouble, settling }: Session,
  { counts, quota }: View,
  { waiting, wakeAt }: Decision,
): Progress {
  const submits = counts.planned > 0 && isOpen("submit", stops);
  return {
    ...{ counts, quota, waiting, stops, diskTrouble },
    until: waiting === null ? null : wakeAt,
    hold: submits ? settling.hold : null,
  };
}
