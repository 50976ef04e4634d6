import { nameOf } from "../options/definition.js";
import type { CommandDefinition } from "./command-list.js";
import { topics } from "./topics.js";

/**
 * The words that can come next on a command line, for the shell. The last word is the one being typed. Nothing means
 * that the shell completes file names.
 */
export function completions(commands: readonly CommandDefinition[], words: readonly string[]): string[] {
  if (words[0] !== "help" || words.length === 1) return following(commands, words, ["help"]);
  const subjects = topics.map(({ name }) => name);
  return following(commands, words.slice(1), subjects);
}

/** `besides` can stand where a command can. */
function following(
  commands: readonly CommandDefinition[],
  words: readonly string[],
  besides: readonly string[],
): string[] {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? "";
  const { command, list } = commandAt(commands, before);
  const flags = Object.entries(command?.flags ?? {});
  const valued = flags.find(
    ([attribute, { value }]) => value !== null && `--${nameOf(attribute)}` === before.at(-1),
  );
  const candidates = valued
    ? (valued[1].choices ?? [])
    : current.startsWith("-")
      ? [...flags.map(([attribute]) => `--${nameOf(attribute)}`), "--help"]
      : [...list.map(({ name }) => name), ...(command ? argumentsOf(command) : besides)];
  return candidates.filter((word) => word.startsWith(current));
}

function argumentsOf({ positionals = [] }: CommandDefinition): string[] {
  return positionals.flatMap(({ choices = [] }) => choices);
}

function commandAt(
  commands: readonly CommandDefinition[],
  words: readonly string[],
): { command: CommandDefinition | undefined; list: readonly CommandDefinition[] } {
  let command: CommandDefinition | undefined;
  let list = commands;
  for (const word of words) {
    const found = list.find(({ name }) => name === word);
    if (!found) break;
    command = found;
    list = found.subcommands ?? [];
  }
  return { command, list };
}
