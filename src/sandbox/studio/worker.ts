import { parentPort } from "node:worker_threads";
import type { Maker } from "../catalogue/model.js";
import type { MediaJob } from "./job.js";
import type { PictureMaker } from "./picture.js";

interface ThreadJob extends MediaJob {
  maker: Exclude<Maker, PictureMaker>;
}

/**
 * Makes one sound or film. Throws with a plain message when the media it was given cannot be used. Makers are loaded when
 * they are first needed, because the encoders of one medium are dead weight for the others.
 */
async function make(job: ThreadJob): Promise<Uint8Array> {
  switch (job.maker) {
    case "speak":
    case "compose":
      return makeSound(job);
    case "film":
      return (await import("./film.js")).filmed(job);
    case "animate":
      return (await import("./film.js")).animated(job);
    case "extend":
      return (await import("./film.js")).extended(job);
    case "perform":
      return (await import("./film.js")).performed(job);
  }
}

async function makeSound(job: ThreadJob): Promise<Uint8Array> {
  const { soundFile } = await import("./sound.js");
  if (job.maker === "speak") return soundFile(await (await import("./sound.js")).speech(job), job.extension);
  const seconds = Number.parseInt(job.input["duration"] ?? "10", 10);
  return soundFile((await import("./sound.js")).music(job, seconds), job.extension);
}

/** The inside of a worker thread: one job at a time, each answered with its bytes or with what went wrong. */
export type WorkerAnswer = { bytes: Uint8Array } | { problem: string };

parentPort?.on("message", async (job: ThreadJob) => {
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
