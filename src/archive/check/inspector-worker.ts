import { parentPort } from "node:worker_threads";
import { nodeDisk } from "../disk/node-disk.js";
import { inspect, type MediaContent } from "./content.js";

/** The worker thread that checks files, one at a time. */
export interface InspectorJob {
  path: string;
  category: string;
  /** If given, only the type is checked, for this reason. */
  typeBecause?: string;
}

export type InspectorAnswer = { content: MediaContent } | { message: string; code: string | null };

parentPort?.on("message", async ({ path, category, typeBecause }: InspectorJob) => {
  try {
    answer({ content: await inspect(nodeDisk, path, category, typeBecause) });
  } catch (error) {
    const { message, code } = error as { message?: unknown; code?: unknown };
    answer({ message: String(message), code: typeof code === "string" ? code : null });
  }
});

function answer(answered: InspectorAnswer): void {
  parentPort?.postMessage(answered);
}
