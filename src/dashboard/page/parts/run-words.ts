import type { ExitName } from "../../../core/exit.js";
import type { RunEntry } from "../../shapes.js";

const endings: Partial<Record<ExitName, string>> = {
  failed: "finished, some failed",
  held: "stopped, some held",
  credits: "stopped: credits",
  cap: "stopped: cap",
  unfinished: "unfinished",
  key: "stopped: key refused",
  unreachable: "stopped: no service",
};

/** How a run stands. One that says it is running while no process works on it has been broken off. */
export function runStateWords(entry: RunEntry): string {
  const { state, alive, exit, counts } = entry;
  if (alive) return "in progress";
  if (state === "running") return "broken off";
  if (state === "cancelled" || state === "paused") return state;
  // For an approval, or for a decision about blocked items: the entry does not say which.
  if (exit === "held" && (counts.held ?? 0) === 0) return isFollowed(entry) ? "finished" : "waits for you";
  return endings[exit as ExitName] ?? state;
}

/** A run that ended and has no items left: a later run of its job has those of its rows; variants are of no run. */
export function isFollowed({ endedAt, alive, counts }: RunEntry): boolean {
  return endedAt !== null && !alive && Object.values(counts).every((items) => items === 0);
}
