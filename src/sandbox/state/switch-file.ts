import { z } from "zod";
import { type SwitchSettings, switches } from "./switches.js";

/**
 * Switches from a file's text: what somebody wrote, or the profile of a real service that the conformance suite saved.
 * Throws an error that names each switch that is not one, or has a value that it cannot have.
 */
export function readSwitches(text: string, file: string): SwitchSettings {
  let settings: unknown;
  try {
    settings = JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  const read = switches.safeParse(settings);
  if (!read.success) throw new Error(`${file} is no set of switches:\n${z.prettifyError(read.error)}`);
  return settings as SwitchSettings;
}
