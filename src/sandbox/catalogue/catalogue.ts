import { audioModels } from "./audio.js";
import { familiarParam } from "./familiar-params.js";
import { imageModels } from "./images.js";
import type { SandboxModel } from "./model.js";
import { videoModels } from "./videos.js";

/** Every model of the sandbox, in the order in which they are listed. */
export const catalogue: readonly SandboxModel[] = [...imageModels, ...videoModels, ...audioModels];

/** The extension of a model's output files for these (complete) params. */
export function outputExtension(model: SandboxModel, params: Readonly<Record<string, string>>): string {
  const format = familiarParam(params, "output_format");
  if (model.category === "video") return "mp4";
  if (model.category === "audio") return format === "wav" ? "wav" : "mp3";
  if (format === "jpeg") return "jpg";
  return format === "webp" ? "webp" : "png";
}
