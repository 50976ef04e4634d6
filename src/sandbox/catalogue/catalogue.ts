import type { InputType } from "../../api/inputs.js";
import type { Category } from "../../api/records.js";
import { audioModels } from "./audio.js";
import { familiarParam } from "./familiar-params.js";
import { imageModels } from "./images.js";
import type { SelectParameter } from "./parameters.js";
import { videoModels } from "./videos.js";

/** Who makes the outputs of a model; the media workers know one maker for each name. */
export type Maker =
  | "paint"
  | "repaint"
  | "upscale"
  | "vignette"
  | "speak"
  | "compose"
  | "film"
  | "animate"
  | "extend"
  | "perform";

export interface SandboxModel {
  key: string;
  name: string;
  category: Category;
  inputType: InputType;
  /** Base cost of one generation in credits. */
  credits: number;
  parameters: readonly SelectParameter[];
  /** How long a task takes: between these, evenly spread. */
  taskMs: { min: number; max: number };
  maker: Maker;
}

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
