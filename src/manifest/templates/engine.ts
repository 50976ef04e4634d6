import { Liquid } from "liquidjs";
import type { LiquidOptions } from "liquidjs/dist/liquid-options.js";

/** The longest rendered text: more is an error, such as a text that is appended to itself repeatedly. */
export const renderedCharactersMax = 1_000_000;
/** The allowed tags. Without loops and files every rendering ends soon. */
export const tagNames = ["assign", "capture", "case", "comment", "echo", "if", "raw", "unless", "#"];

/** A Liquid engine for texts of anybody: a rendering ends soon, reads no file, and names nothing that is not there. */
export function boundedLiquid(options: LiquidOptions = {}): Liquid {
  const engine = new Liquid({
    strictVariables: true,
    strictFilters: true,
    ownPropertyOnly: true,
    memoryLimit: renderedCharactersMax,
    relativeReference: false,
    ...options,
  });
  for (const tag of Object.keys(engine.tags)) if (!tagNames.includes(tag)) delete engine.tags[tag];
  return engine;
}
