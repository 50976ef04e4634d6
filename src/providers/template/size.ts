import { JobRefused, type ProviderJob } from "../provider.js";

export interface Size {
  width: number;
  height: number;
}

/** The longest side (px). A picture of this size takes 268 MB while it is made. */
export const sideMax = 8_192;

/** Params that say how the result is made, and that a template need not use. */
export const settingParams = ["size", "width", "height", "output_format"] as const;

export const outputFormats = ["png", "jpeg", "webp", "pdf"] as const;
export type OutputFormat = (typeof outputFormats)[number];

/**
 * The size of a job's result: its param `size`, such as `1200x628`, or its params `width` and `height`, or those of the model.
 * Null if nothing says it. Throws `JobRefused`.
 */
export function sizeFor(params: ProviderJob["params"], model: Partial<Size>): Size | null {
  const { size } = params;
  const [, width, height] = /^\s*(\d{1,6})\s*[x×]\s*(\d{1,6})\s*$/i.exec(size ?? "") ?? [];
  if (size !== undefined && width === undefined)
    throw new JobRefused(
      "parameter",
      `size is written as 1200x628, but it is ${JSON.stringify(size)}`,
      false,
    );
  const sides = {
    width: sideFor("width", width ?? params["width"] ?? model.width),
    height: sideFor("height", height ?? params["height"] ?? model.height),
  };
  return sides.width === null || sides.height === null ? null : { width: sides.width, height: sides.height };
}

function sideFor(name: string, written: string | number | undefined): number | null {
  if (written === undefined) return null;
  const side = Number(written);
  if (Number.isInteger(side) && side >= 1 && side <= sideMax) return side;
  throw new JobRefused(
    "parameter",
    `${name} is at least 1 and at most ${sideMax} px, but it is ${written}`,
    false,
  );
}

/** The format of a job's result: its param `output_format`, PNG by default. Throws `JobRefused`. */
export function formatFor(params: ProviderJob["params"]): OutputFormat {
  const written = params["output_format"]?.toLowerCase() ?? "png";
  const format = written === "jpg" ? "jpeg" : written;
  if ((outputFormats as readonly string[]).includes(format)) return format as OutputFormat;
  throw new JobRefused(
    "parameter",
    `output_format is one of ${outputFormats.join(", ")}, but it is ${JSON.stringify(written)}`,
    false,
  );
}
