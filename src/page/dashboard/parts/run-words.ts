import type { ExitName } from "../../../core/exit.js";
import { wantedItems } from "../../../core/item.js";
import { timeLeftMs } from "../../../core/pace/time-left.js";
import { isOfQuota } from "../../../core/reason.js";
import type { LiveRun } from "../../../documents/page.js";
import type { RunDocument } from "../../../documents/run.js";
import { duration } from "../../../text/amounts.js";
import { clockTime } from "../../parts/amounts.js";

const someFailed = "finished, some failed";
const endings: Partial<Record<ExitName, string>> = {
  failed: someFailed,
  held: "stopped, some held",
  credits: "stopped: credits",
  cap: "stopped: cap",
  unfinished: "unfinished",
  key: "stopped: key refused",
  unreachable: "stopped: no service",
};

/** How a run stands. One that says it is running while no process works on it has crashed. */
export function runStateWords(entry: RunDocument): string {
  const { state, alive, exitName, counts, awaiting } = entry;
  if (alive) return "in progress";
  if (state === "running") return "crashed";
  if (state === "cancelled" || state === "paused") return state;
  if (isReopened(entry)) return awaiting > 0 ? "waits for your approval" : "ready to continue";
  // It ended for an approval, or for a decision that may have been made since.
  if (exitName === "held" && (counts.held ?? 0) === 0) {
    const { archived = 0, failed = 0 } = counts;
    if (awaiting > 0) return "waits for your approval";
    if (wantedItems(counts) > archived + failed) return "waits for you";
    return failed > 0 ? someFailed : "finished";
  }
  return endings[exitName as ExitName] ?? state;
}

/** A decision has given a run that had ended something to do again. */
function isReopened({ state, alive, exitName }: RunDocument): boolean {
  return !alive && state === "interrupted" && exitName === null;
}

/** Whether a person has decided about everything that the run waited for, and items are left. */
export function goesOn(entry: RunDocument): boolean {
  const { state, alive, exitName, counts, awaiting } = entry;
  const { archived = 0, failed = 0, held = 0 } = counts;
  const isOpen = !alive && exitName === "held" && state !== "cancelled" && state !== "paused";
  return (
    (isOpen || isReopened(entry)) && awaiting === 0 && held === 0 && wantedItems(counts) > archived + failed
  );
}

/** A run that ended and has no items left: a later run of its job has those of its rows; variants are of no run. */
export function isFollowed({ endedAt, alive, counts }: RunDocument): boolean {
  return endedAt !== null && !alive && Object.values(counts).every((items) => items === 0);
}

/** When a run in progress is expected to end. */
export function endWords({ counts, forecastMs, since, reason }: LiveRun, now: number): string {
  if (reason !== null && !isOfQuota(reason)) return "not known";
  if (wantedItems(counts) > 0 && (counts.archived ?? 0) === wantedItems(counts)) return "ending";
  const left = Math.max(timeLeftMs(counts, forecastMs, now - since) ?? 0, (reason?.until ?? now) - now);
  if (left < 1_000) return "not known";
  const wholeMs = Math.round(left / 1_000) * 1_000;
  return `about ${clockTime(now + wholeMs)}, in ${duration(wholeMs)}`;
}
