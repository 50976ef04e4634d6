import type { InputType } from "../../api/inputs.js";
import type { Category } from "../../api/records.js";

/** The maker of a model's outputs; media workers have one maker per name. */
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
  /** The longer side (px) of the pictures and films that it makes, instead of the usual ones. */
  longSide?: number;
}

/**
 * A parameter of a model. Our own are all of the one type that the service's page shows; those of a model file may be
 * of others.
 */
export interface SelectParameter {
  key: string;
  label: string;
  type: string;
  /** The allowed values; empty if every value is allowed. */
  options: { value: string; label: string }[];
  /** The default; empty if the model decides. */
  default: string;
}

/** A select parameter. The first option is the default unless another is named; an option is its value, or its value and label. */
export function select(
  key: string,
  label: string,
  options: readonly (string | readonly [value: string, label: string])[],
  preset?: string,
): SelectParameter {
  const pairs = options.map((option) => (typeof option === "string" ? ([option, option] as const) : option));
  const first = pairs[0];
  if (!first) throw new Error(`parameter ${key} has no options`);
  return {
    key,
    label,
    type: "select",
    options: pairs.map(([value, text]) => ({ value, label: text })),
    default: preset ?? first[0],
  };
}

export const aspectRatio = select("aspect_ratio", "Aspect ratio", [
  ["1:1", "Square"],
  ["16:9", "Landscape"],
  ["9:16", "Portrait"],
  ["4:3", "Landscape 4:3"],
  ["3:4", "Portrait 3:4"],
  ["3:2", "Photo"],
]);

export const videoRatio = select("aspect_ratio", "Aspect ratio", [
  ["16:9", "Landscape"],
  ["9:16", "Portrait"],
  ["1:1", "Square"],
]);

export const imageFormat = select("output_format", "File format", [
  ["png", "PNG"],
  ["jpeg", "JPEG"],
  ["webp", "WebP"],
]);

export const audioFormat = select("output_format", "File format", [
  ["mp3", "MP3"],
  ["wav", "WAV"],
]);

export const style = select("style", "Style", [
  ["paper", "Cut paper"],
  ["dusk", "Dusk"],
]);

export const seed = select("seed", "Variant", ["1", "2", "3", "4"]);

export const videoSeconds = select(
  "duration",
  "Duration",
  [
    ["2", "2 seconds"],
    ["4", "4 seconds"],
    ["6", "6 seconds"],
  ],
  "4",
);

export const motion = select("motion", "Camera", [
  ["push-in", "Push in"],
  ["pull-out", "Pull out"],
  ["pan", "Pan"],
  ["drift", "Drift"],
]);

export const soundtrack = select("sound", "Sound", [
  ["off", "None"],
  ["music", "Music"],
]);
