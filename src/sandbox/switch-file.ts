import { type SwitchSettings, switches } from "../service/state/switches.js";
import { readJson } from "./catalogue/json-file.js";

/**
 * Switches from a file's text: written by hand, or the profile of a real service saved by the conformance suite. Throws
 * an error that names each unknown switch and each invalid value.
 */
export function readSwitches(text: string, file: string): SwitchSettings {
  return readJson(text, file, { schema: switches, what: "set of switches" });
}
