import type { MediaJob } from "./job.js";
import { painting, pictureFile } from "./painting.js";
import { repainted, upscaled, vignetted } from "./retouching.js";

/** Makes one output. Throws with a plain message when the media it was given cannot be used. */
export async function make(job: MediaJob): Promise<Uint8Array> {
  switch (job.maker) {
    case "paint":
      return pictureFile(await painting(job), job.extension);
    case "repaint":
      return pictureFile(await repainted(job), job.extension);
    case "upscale":
      return pictureFile(await upscaled(job), job.extension);
    case "cutout":
      return pictureFile(await vignetted(job), job.extension);
  }
}
