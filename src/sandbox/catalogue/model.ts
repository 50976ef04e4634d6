import { type ServiceModel, select } from "../../service/models/model.js";

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

/** A model of the sandbox: what the service lists of it, and who makes its outputs. */
export interface SandboxModel extends ServiceModel {
  /** How long a task takes: between these, evenly spread. */
  taskMs: { min: number; max: number };
  maker: Maker;
  /** The longer side (px) of the pictures and films that it makes, instead of the usual ones. */
  longSide?: number;
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
