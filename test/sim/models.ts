import type { SandboxModel } from "../../src/sandbox/catalogue/model.js";

/** The models of the simulated service: few, with prices that differ and one that is no whole number. */
const prices = { sketch: 1, picture: 4, print: 2.5, sound: 3, poster: 12.3 } as const;

export const modelNames = Object.keys(prices);

/**
 * Those of a models file, each of another provider (`served/models.ts`). All are sounds: a picture is decoded by other threads, and
 * no seed decides which of them ends first.
 */
export const servedPrices = { spoken: 2, sung: 4, played: 0.5, drummed: 1 } as const;

export const models: ReadonlyMap<string, SandboxModel> = new Map(
  Object.entries(prices).map(([key, credits]) => [
    key,
    {
      key,
      name: key,
      category: categoryOf(key),
      inputType: "text",
      credits,
      parameters: [],
      taskMs: { min: 1_000, max: 1_000 },
      maker: "paint",
    },
  ]),
);

export function priceOf(model: string): number {
  return models.get(model)?.credits ?? servedPrices[model as keyof typeof servedPrices] ?? 0;
}

export function categoryOf(model: string): "image" | "audio" {
  return model === "sound" || model in servedPrices ? "audio" : "image";
}
