import type { InputType, MediaField } from "../api/inputs.js";
import type { Category } from "../api/records.js";
import { aspectRatio, imageFormat, type SelectParameter, seed, select, style } from "./parameters.js";

/** Who makes the outputs of a model; the media workers know one maker for each name. */
export type Maker = "paint" | "repaint" | "upscale" | "cutout";

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
  /** Media fields that the model uses when they are given, besides the ones its input type requires. */
  optional: readonly MediaField[];
}

const imageMs = { min: 500, max: 1_800 };

export const catalogue: readonly SandboxModel[] = [
  {
    key: "aurora-image",
    name: "Aurora Image",
    category: "image",
    inputType: "text",
    credits: 4,
    parameters: [
      aspectRatio,
      style,
      imageFormat,
      select("size", "Size", [
        ["standard", "Standard"],
        ["large", "Large"],
      ]),
      seed,
    ],
    taskMs: imageMs,
    maker: "paint",
    optional: [],
  },
  {
    key: "aurora-image-mini",
    name: "Aurora Image Mini",
    category: "image",
    inputType: "text",
    credits: 1,
    parameters: [aspectRatio, imageFormat],
    taskMs: { min: 500, max: 1_000 },
    maker: "paint",
    optional: [],
  },
  {
    key: "atelier-edit",
    name: "Atelier Edit",
    category: "image",
    inputType: "text+image",
    credits: 6,
    parameters: [
      select("look", "Look", [
        ["duotone", "Duotone"],
        ["vivid", "Vivid"],
        ["mono", "Black and white"],
        ["sketch", "Pencil sketch"],
      ]),
      imageFormat,
    ],
    taskMs: imageMs,
    maker: "repaint",
    optional: [],
  },
  {
    key: "atelier-upscale",
    name: "Atelier Upscale",
    category: "image",
    inputType: "image",
    credits: 3,
    parameters: [
      select("scale", "Scale", [
        ["2x", "Twice"],
        ["3x", "Three times"],
        ["4x", "Four times"],
      ]),
      imageFormat,
    ],
    taskMs: imageMs,
    maker: "upscale",
    optional: [],
  },
  {
    key: "atelier-vignette",
    name: "Atelier Vignette",
    category: "image",
    inputType: "image",
    credits: 2,
    parameters: [
      select("background", "Background", [
        ["white", "White"],
        ["black", "Black"],
        ["blur", "Blurred"],
      ]),
      imageFormat,
    ],
    taskMs: imageMs,
    maker: "cutout",
    optional: [],
  },
];

/** The extension of a model's output files for these (complete) params. */
export function outputExtension(model: SandboxModel, params: Readonly<Record<string, string>>): string {
  const format = params["output_format"];
  if (model.category === "video") return "mp4";
  if (model.category === "audio") return format === "wav" ? "wav" : "mp3";
  if (format === "jpeg") return "jpg";
  return format === "webp" ? "webp" : "png";
}
