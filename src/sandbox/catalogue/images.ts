import type { SandboxModel } from "./model.js";
import { aspectRatio, imageFormat, seed, select, style } from "./parameters.js";

const imageMs = { min: 500, max: 1_800 };

/** The image models. */
export const imageModels: readonly SandboxModel[] = [
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
    maker: "vignette",
  },
];
