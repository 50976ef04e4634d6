import type { Fault } from "./fault.js";

/** What a fault can happen to: a request of one endpoint, or the download of an output. */
export const subjects = ["generate", "task", "models", "me", "download"] as const;
export type FaultSubject = (typeof subjects)[number];

/** Where a kind of fault makes sense. */
export function subjectsOf(kind: Fault["kind"]): readonly FaultSubject[] {
  if (kind.startsWith("download-")) return ["download"];
  if (kind.startsWith("task-") || kind === "generation-error") return ["generate"];
  if (kind === "internal-error") return ["task"];
  return ["generate", "task", "models", "me"];
}
