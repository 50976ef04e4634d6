import { readFile } from "node:fs/promises";
import { z } from "zod";
import { type FaultPlan, faultPlan } from "./plan.js";
import { presets } from "./presets.js";

/**
 * The plan of a preset, or of a JSON file. Throws an error that says what was expected, what was found and where;
 * `seed`, where it is given, replaces the plan's own.
 */
export async function readFaults(fileOrPreset: string, seed?: string): Promise<FaultPlan> {
  const settings = Object.hasOwn(presets, fileOrPreset)
    ? presets[fileOrPreset as keyof typeof presets]
    : await fromFile(fileOrPreset);
  const plan = faultPlan.safeParse(settings);
  if (!plan.success) throw new Error(`${fileOrPreset} is no plan of faults:\n${z.prettifyError(plan.error)}`);
  return seed === undefined ? plan.data : { ...plan.data, seed };
}

async function fromFile(file: string): Promise<unknown> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    const names = Object.keys(presets).join(", ");
    throw new Error(`expected a JSON file or one of ${names}, got ${file} (${error.code})`);
  });
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}
