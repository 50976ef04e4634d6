import { parentPort } from "node:worker_threads";
import type { MediaJob } from "./job.js";
import { make } from "./make.js";

/** The inside of a worker thread: one job at a time, each answered with its bytes or with what went wrong. */
export type WorkerAnswer = { bytes: Uint8Array } | { problem: string };

parentPort?.on("message", async (job: MediaJob) => {
  try {
    const made = await make(job);
    // Copied into memory of its own, which can then be handed over and not copied again.
    const bytes = new Uint8Array(made);
    parentPort?.postMessage({ bytes } satisfies WorkerAnswer, [bytes.buffer]);
  } catch (error) {
    parentPort?.postMessage({
      problem: error instanceof Error ? error.message : String(error),
    } satisfies WorkerAnswer);
  }
});
