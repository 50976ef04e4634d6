import type { SandboxModel } from "./model.js";
import { audioFormat, select } from "./parameters.js";

const audioMs = { min: 800, max: 2_500 };

/** The audio models. */
export const audioModels: readonly SandboxModel[] = [
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
      select("speed", "Speed", [
        ["normal", "Normal"],
        ["slow", "Slow"],
        ["fast", "Fast"],
      ]),
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
      select("duration", "Duration", [
        ["10", "10 seconds"],
        ["5", "5 seconds"],
        ["30", "30 seconds"],
      ]),
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
