import { servedPrices } from "../models.js";

/** The four ways in which a provider takes a job. */
export const ways = ["at-once", "queue", "by-id", "program"] as const;
export type Way = (typeof ways)[number];

const wayOfModel: Readonly<Record<keyof typeof servedPrices, Way>> = {
  spoken: "at-once",
  sung: "queue",
  drummed: "by-id",
  played: "program",
};

export const servedModels = Object.keys(servedPrices) as (keyof typeof servedPrices)[];

/** The models file: each kind of provider is named after its way. */
export const modelsFile = [
  "providers:",
  ...ways.map((way) => `  ${way}: { kind: ${way}, concurrency: 2, timeout: 2m }`),
  "models:",
  ...servedModels.map(
    (key) =>
      `  - { key: ${key}, provider: ${wayOfModel[key]}, category: audio, input: text, credits: ${servedPrices[key]} }`,
  ),
  "",
].join("\n");
