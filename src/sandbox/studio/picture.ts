import type { Maker } from "../catalogue/model.js";
import type { MediaJob } from "./job.js";

const pictureMakers = ["paint", "repaint", "upscale", "vignette"] as const;
export type PictureMaker = (typeof pictureMakers)[number];

export function isPicture(maker: Maker): maker is PictureMaker {
  return (pictureMakers as readonly Maker[]).includes(maker);
}

/** Makes one picture. Throws with a plain message when the media it was given cannot be used. */
export async function makePicture(job: MediaJob): Promise<Uint8Array> {
  const { painting, pictureFile } = await import("./painting.js");
  if (job.maker === "paint") return pictureFile(await painting(job), job.extension);
  const { repainted, upscaled, vignetted } = await import("./retouching.js");
  const change = job.maker === "repaint" ? repainted : job.maker === "upscale" ? upscaled : vignetted;
  return pictureFile(await change(job), job.extension);
}
