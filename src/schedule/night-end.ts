import { type Credits, inCredits } from "../core/money.js";

/** What came of the process of a night. */
export interface NightEnd {
  /** Null when a signal ended it, or when it could not be started. */
  exit: number | null;
  /** In one line. */
  note: string;
  run: number | null;
  credits: Credits | null;
  archived: number | null;
  failed: number | null;
  held: number | null;
  /** When it can go on by itself (UTC ms). */
  resumeAt: number | null;
}

/** Until a night whose process was lost goes on (ms), and how often it does. */
const lostMs = 60_000;
const lossesMax = 2;
const interruptedExit = 130;
const crashExit = 1;

/** Whether its process ended by a signal or by a defect. */
export function isLost({ exit }: NightEnd): boolean {
  return exit === null || exit === crashExit;
}

/** When a night goes on by itself (UTC ms); null when it is over. */
export function againAt(
  end: NightEnd,
  { losses, now, isStopping }: { losses: number; now: number; isStopping: boolean },
): number | null {
  if (end.exit === interruptedExit) return isStopping ? now : null;
  if (isLost(end)) return losses < lossesMax ? now + lostMs : null;
  return end.resumeAt === null ? null : Math.max(end.resumeAt, now + lostMs);
}

/** The end in one line. */
export function endText({ exit, note, credits }: NightEnd): string {
  const spent = credits === null ? "" : `, ${inCredits(credits)}`;
  return `${note}${spent}${exit === null ? "" : ` (exit ${exit})`}`;
}
