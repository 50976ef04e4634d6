import { resolve } from "node:path";
import type { Command } from "commander";
import type { Flag } from "../../store/schedules.js";

const paths = ["--out", "--api-key-file"];

/**
 * The flags that a command is given, word by word, but for those named: what a night or a saved plan is given again.
 * Commander itself keeps only what it made of them. Paths are made whole, as they will be read from elsewhere.
 */
export function givenFlags(command: Command, but: readonly string[]): readonly Flag[] {
  const given: Flag[] = [];
  for (const { long } of command.options) {
    if (!long || but.includes(long)) continue;
    command.on(`option:${long.slice(2)}`, (value: string | null | undefined) =>
      given.push(value == null ? [long] : [long, paths.includes(long) ? resolve(value) : value]),
    );
  }
  return given;
}
