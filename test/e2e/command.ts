import { once } from "node:events";
import { appendFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterThisFile } from "../after-file.js";
import { endCommands } from "./in-process.js";
import { searchPlaces } from "./leaked-key.js";
import {
  type Circumstances,
  children,
  main,
  makePlace,
  type Place,
  type Running,
  startProcess,
} from "./process.js";

export { run, type Started, started } from "./in-process.js";
export {
  type Circumstances,
  type Ended,
  eventually,
  main,
  type Place,
  type Running,
  spawned,
  start,
  startProcess,
} from "./process.js";

const folders: string[] = [];

/** A place that is gone when the tests of this file have ended, and with it every process that still runs. */
export function newPlace(): Place {
  const place = makePlace("e2e");
  if (folders.length === 0) afterThisFile(endPlaces);
  folders.push(place.root);
  return place;
}

/** Throws when the key that commands are given stands anywhere in them, or was printed. */
async function endPlaces(): Promise<void> {
  await endCommands();
  const left = [...children].map((child) => once(child, "close"));
  for (const child of children) child.kill("SIGKILL");
  await Promise.all(left);
  const all = folders.splice(0);
  const searched = searchPlaces(all);
  for (const folder of all) rmSync(folder, { recursive: true, force: true });
  const tally = process.env["BULKGEN_LEAKED_KEY_TALLY"];
  if (tally !== undefined) appendFileSync(tally, `${JSON.stringify(searched)}\n`);
  if (searched.found.length > 0) throw new Error(`P21: the key stands ${searched.found.join("; ")}`);
}

/** The files below a folder that hold a text, relative to it. */
export function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(text))
    .map((path) => path.slice(folder.length + 1))
    .toSorted();
}

/** Starts the command on a terminal of so many columns. All that it prints comes as stdout. */
export function startOnTerminal(
  place: Place,
  columns: number,
  args: readonly string[],
  circumstances: Circumstances = {},
): Running {
  const words = [process.execPath, main, ...args].map((word) => `'${word}'`).join(" ");
  const command = `stty cols ${columns} rows 40; exec ${words}`;
  // The two families of script(1) take the command in two ways.
  const how =
    process.platform === "linux" ? ["-qec", command, "/dev/null"] : ["-q", "/dev/null", "sh", "-c", command];
  const env = { ...place.env, TERM: "xterm-256color", ...circumstances.env };
  return startProcess("script", how, { cwd: place.folder, env }, "pipe");
}
