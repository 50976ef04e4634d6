import type { SandboxModel } from "./model.js";
import { motion, soundtrack, style, videoRatio, videoSeconds } from "./parameters.js";

const videoMs = { min: 3_000, max: 8_000 };

/** The video models. */
export const videoModels: readonly SandboxModel[] = [
  {
    key: "reel-text",
    name: "Reel from Text",
    category: "video",
    inputType: "text",
    credits: 20,
    parameters: [videoRatio, videoSeconds, style, motion, soundtrack],
    taskMs: videoMs,
    maker: "film",
  },
  {
    key: "reel-image",
    name: "Reel from Image",
    category: "video",
    inputType: "image",
    credits: 15,
    parameters: [videoSeconds, motion, soundtrack],
    taskMs: videoMs,
    maker: "animate",
  },
  {
    key: "reel-direct",
    name: "Reel Directed",
    category: "video",
    inputType: "text+image",
    credits: 25,
    parameters: [videoSeconds, motion, soundtrack],
    taskMs: videoMs,
    maker: "animate",
  },
  {
    key: "reel-extend",
    name: "Reel Extension",
    category: "video",
    inputType: "video",
    credits: 18,
    parameters: [videoSeconds, motion],
    taskMs: videoMs,
    maker: "extend",
  },
  {
    // Moves a picture to the sound in audio_url; without that, to a tune of its own.
    key: "reel-perform",
    name: "Reel Performance",
    category: "video",
    inputType: "image",
    credits: 22,
    parameters: [videoSeconds],
    taskMs: videoMs,
    maker: "perform",
  },
];
