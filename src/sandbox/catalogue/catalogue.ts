import { select } from "../../service/models/model.js";
import {
  aspectRatio,
  audioFormat,
  imageFormat,
  motion,
  type SandboxModel,
  seed,
  soundtrack,
  style,
  videoRatio,
  videoSeconds,
} from "./model.js";

const imageMs = { min: 500, max: 1_800 };

const imageModels: readonly SandboxModel[] = [
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
    longSide: 640,
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

const videoMs = { min: 3_000, max: 8_000 };

const videoModels: readonly SandboxModel[] = [
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

const audioMs = { min: 800, max: 2_500 };

const audioModels: readonly SandboxModel[] = [
  {
    key: "voice-clear",
    name: "Voice Clear",
    category: "audio",
    inputType: "text",
    credits: 2,
    parameters: [
      select("voice", "Voice", [
        ["clara", "Clara"],
        ["ruben", "Ruben"],
        ["angus", "Angus"],
      ]),
      select(
        "speed",
        "Speed",
        [
          ["slow", "Slow"],
          ["normal", "Normal"],
          ["fast", "Fast"],
        ],
        "normal",
      ),
      audioFormat,
    ],
    taskMs: audioMs,
    maker: "speak",
  },
  {
    key: "score-music",
    name: "Score",
    category: "audio",
    inputType: "text",
    credits: 5,
    parameters: [
      select(
        "duration",
        "Duration",
        [
          ["5", "5 seconds"],
          ["10", "10 seconds"],
          ["30", "30 seconds"],
        ],
        "10",
      ),
      select("mood", "Mood", [
        ["calm", "Calm"],
        ["bright", "Bright"],
        ["dark", "Dark"],
      ]),
      audioFormat,
    ],
    taskMs: audioMs,
    maker: "compose",
  },
];

/** Every model of the sandbox, in the order in which they are listed. */
export const catalogue: readonly SandboxModel[] = [...imageModels, ...videoModels, ...audioModels];
