import { shellWord } from "../../../text/shell.js";
import type { Started } from "../../../workspace/starter.js";

/** What was made, kept and added, a line each. */
export function made({ made: names, kept, ignored }: Started): string[] {
  return [
    ...names.map((name) => `made   ${name}${name === ".env" ? " (only you can read it)" : ""}`),
    ...kept.map((name) => `kept   ${name} (it existed)`),
    ...(ignored.length === 0 ? [] : [`added  ${ignored.join(" ")} to .gitignore`]),
  ];
}

/** What to type next, each with its reason; `way` leads from here to the folder. */
export function stepsText(way: string, steps: readonly (readonly [string, string])[]): string[] {
  const all = [...(way === "" ? [] : [[`cd ${quoted(way)}`, ""] as const]), ...steps];
  const width = Math.max(...all.map(([command]) => command.length));
  return ["next:", ...all.map(([command, why]) => `  ${command.padEnd(width)}  ${why}`.trimEnd())];
}

/** A folder as it can be pasted after `cd`, which would take a dash for an option. */
function quoted(name: string): string {
  return shellWord(name.startsWith("-") ? `./${name}` : name);
}
