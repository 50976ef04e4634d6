import yargs, { type Argv, type Options } from "yargs";
import { EarlyExit } from "../core/exit.js";
import { type FlagDefinition, type FlagSet, nameOf } from "../options/definition.js";
import { FlagError } from "../options/values.js";
import type { Flag } from "../store/schedules.js";
import { nearest } from "../text/nearest.js";
import { type CommandDefinition, leadingCommands, type Positional } from "./command-list.js";
import { checkLine, type LineWords } from "./settings/settings.js";

/**
 * Reads the command line with yargs, which splits the words after the command into flags and arguments. It prints
 * nothing and never ends the process. Values are read and mistakes are reported by our own definitions, so that a flag
 * behaves the same on the command line, in the environment and in a file.
 */
export interface CommandLine {
  /** The command, after the commands above it. */
  path: readonly CommandDefinition[];
  /** `--help` was given. The rest is then unchecked. */
  help: boolean;
  line: LineWords;
  given: Flag[];
  args: Readonly<Record<string, unknown>>;
}

type Words = Record<string, unknown> & { _: (string | number)[] };

/** Throws EarlyExit for a line that cannot be read. */
export function parseLine(commands: readonly CommandDefinition[], argv: readonly string[]): CommandLine {
  const leading = leadingCommands(commands, argv);
  const command = leading.at(-1);
  if (!command) throw unknownCommand(commands, argv);
  return lineOf(commands, leading, argv.slice(leading.length));
}

/** yargs for one command: registering the commands there too would lay out the help text of each at every start. */
function parserOf(flags: FlagSet, hint: string): Argv {
  return yargs()
    .scriptName("bulkgen")
    .help(false)
    .version(false)
    .exitProcess(false)
    .detectLocale(false)
    .showHelpOnFail(false)
    .fail((message, error) => {
      throw new EarlyExit("usage", yargsMessage(message ?? error.message, flags, hint));
    })
    .parserConfiguration({
      "boolean-negation": false,
      "camel-case-expansion": false,
      "dot-notation": false,
      "greedy-arrays": false,
      "parse-numbers": false,
      "parse-positional-numbers": false,
      "short-option-groups": false,
    })
    .options(Object.fromEntries(yargsOptions(flags)));
}

const helpFlag: FlagDefinition<boolean> = {
  describe: "show help",
  value: null,
  short: "h",
  parse: () => true,
};

function yargsOptions(flags: FlagSet): [string, Options][] {
  return Object.entries<FlagDefinition>({ ...flags, help: helpFlag }).flatMap(([attribute, flag]) => {
    const name = nameOf(attribute);
    const base: Options = flag.short === undefined ? {} : { alias: flag.short };
    if (flag.value === null) {
      const negated: [string, Options][] = flag.negatable
        ? [[`no-${name}`, { ...base, type: "boolean" }]]
        : [];
      return [[name, { ...base, type: "boolean" }] as [string, Options], ...negated];
    }
    return [[name, { ...base, type: "string", nargs: 1 }] as [string, Options]];
  });
}

/** The only mistake that yargs itself finds is a flag without its value; the others are found below. */
function yargsMessage(message: string, flags: FlagSet, hint: string): string {
  const word = /^Not enough arguments following: (.+)$/.exec(message)?.[1];
  if (word === undefined) return message;
  const [attribute] = Object.entries(flags).find(([, { short }]) => short === word) ?? [];
  const flag = attribute === undefined ? word : nameOf(attribute);
  return `--${flag}: expected a value, got none. A value that starts with a dash is written --${flag}=VALUE. ${hint}`;
}

function seeHelp(path: readonly CommandDefinition[]): string {
  return `See \`bulkgen ${path.map(({ name }) => name).join(" ")} --help\`.`;
}

/** The flags of all commands below: what stands before the name of one of them may be a flag of it. */
function flagsBelow({ subcommands = [] }: CommandDefinition): FlagSet {
  return Object.assign({}, ...subcommands.flatMap((each) => [flagsBelow(each), each.flags ?? {}]));
}

/** `all` are the commands beside the first of `path`. */
function lineOf(
  all: readonly CommandDefinition[],
  path: readonly CommandDefinition[],
  argv: readonly string[],
): CommandLine {
  const command = path.at(-1) as CommandDefinition;
  const flags = command.flags ?? {};
  const hint = seeHelp(path);
  const read = (of: FlagSet, line: readonly string[]) =>
    parserOf(of, hint).parse(withValues(of, line)) as unknown as Words;
  // Flags may come before the name of a subcommand, as in `sandbox --json account`.
  const { subcommands = [] } = command;
  if (subcommands.length > 0) {
    const below = { ...flagsBelow(command), ...flags };
    const { _: names } = read(below, argv);
    const sub = subcommands.find(({ name }) => name === names[0]);
    // The value of a flag may be the same word: the name is the first that is not a value.
    const isName = (word: string, at: number) =>
      word === names[0] && read(below, argv.slice(0, at + 1))._.length === 1;
    if (sub) return lineOf(all, [...path, sub], argv.toSpliced(argv.findIndex(isName), 1));
  }
  const words = read(flags, argv);
  const line: Record<string, string[]> = {};
  const given: Flag[] = [];
  for (const [attribute, flag] of Object.entries(flags)) {
    const name = nameOf(attribute);
    const texts = listOf(words[name]);
    if (flag.value !== null && texts.length > 0) {
      line[attribute] = texts;
      given.push(...texts.map((text): Flag => [`--${name}`, text]));
    } else if (texts.includes("true") || words[`no-${name}`] === true) {
      line[attribute] = [texts.includes("true") ? "true" : "false"];
      given.push([texts.includes("true") ? `--${name}` : `--no-${name}`]);
    }
  }
  const help = listOf(words["help"]).includes("true");
  if (help) return { path, help, line, given, args: {} };
  const takers = (flag: string) =>
    command.instead?.[flag]
      ? ` ${command.instead[flag]}`
      : takersOf(flag, path.slice(0, -1), path.at(-2)?.subcommands ?? all);
  const mistake = mistakeIn({ flags, takers }, line, words, argv);
  if (mistake !== null) throw new EarlyExit("usage", `${mistake} ${hint}`);
  try {
    checkLine(flags, line);
    return { path, help, line, given, args: argsOf(command, words._.map(String)) };
  } catch (error) {
    if (error instanceof EarlyExit) {
      const end = /[.?]$/.test(error.message) ? "" : ".";
      throw new EarlyExit("usage", `${error.message}${end} ${hint}`);
    }
    throw error;
  }
}

/** Gives flags that stand alone the value that they mean. */
function withValues(flags: FlagSet, argv: readonly string[]): string[] {
  const alone = new Map<string, FlagDefinition>(
    Object.entries<FlagDefinition>(flags).flatMap(([attribute, flag]) =>
      flag.alone === undefined ? [] : [[`--${nameOf(attribute)}`, flag] as const],
    ),
  );
  const end = argv.indexOf("--");
  return argv.map((word, index) => {
    const flag = end >= 0 && index > end ? undefined : alone.get(word);
    if (flag === undefined || flag.choices?.includes(argv[index + 1] ?? "")) return word;
    return `${word}=${flag.alone}`;
  });
}

function listOf(value: unknown): string[] {
  return value === undefined ? [] : Array.isArray(value) ? value.map(String) : [String(value)];
}

/** How many commands that take an option are named. */
const takersMax = 2;

/** Names the commands beside one that have the flag which it does not have; empty if none has. */
function takersOf(
  flag: string,
  above: readonly CommandDefinition[],
  beside: readonly CommandDefinition[],
): string {
  const takers = beside.filter(({ flags }) => Object.keys(flags ?? {}).some((each) => nameOf(each) === flag));
  if (takers.length === 0 || takers.length > takersMax) return "";
  const names = takers.map(
    ({ name }) => `\`bulkgen ${[...above.map((each) => each.name), name].join(" ")}\``,
  );
  return ` ${names.join(" and ")} ${names.length === 1 ? "takes" : "take"} it.`;
}

/** What is wrong with the flags as a whole; null when nothing is. */
function mistakeIn(
  { flags, takers }: { flags: FlagSet; takers: (flag: string) => string },
  line: LineWords,
  words: Words,
  argv: readonly string[],
): string | null {
  const known = yargsOptions(flags);
  const names = new Set(known.flatMap(([name, { alias }]) => [name, ...listOf(alias)]));
  const unknown = Object.keys(words).find((name) => name !== "_" && name !== "$0" && !names.has(name));
  if (unknown !== undefined) {
    const near = nearest(
      unknown,
      known.map(([name]) => name),
    );
    const flag = unknown.length === 1 ? `-${unknown}` : `--${unknown}`;
    return `unknown option ${flag}.${near === undefined ? takers(unknown) : ` Did you mean --${near}?`}`;
  }
  const end = argv.indexOf("--");
  const valued = (end < 0 ? argv : argv.slice(0, end)).find((word) =>
    known.some(([name, { type }]) => type === "boolean" && word.startsWith(`--${name}=`)),
  );
  if (valued !== undefined) return `${valued.split("=")[0]}: expected no value.`;
  for (const [attribute, flag] of Object.entries(flags)) {
    const name = nameOf(attribute);
    if (flag.required && !line[attribute]) return `--${name} ${flag.value ?? ""} is missing.`;
    const other = line[attribute] && flag.conflicts?.find((each) => line[each]);
    if (other) return `--${name} cannot be used with --${nameOf(other)}.`;
    const { needs } = flag;
    if (line[attribute] && needs && !line[needs])
      return `--${name} is for --${nameOf(needs)}. Add --${nameOf(needs)}${flags[needs]?.value ? ` ${flags[needs].value}` : ""}.`;
  }
  return null;
}

/** Throws EarlyExit. */
function argsOf({ positionals = [], subcommands = [] }: CommandDefinition, words: readonly string[]) {
  const args: Record<string, unknown> = {};
  let used = 0;
  for (const positional of positionals) {
    const { name, many, required } = positional;
    const mine = many ? words.slice(used) : words.slice(used, used + 1);
    used += mine.length;
    if (required && mine.length === 0)
      throw new EarlyExit("usage", `expected ${name} (${positional.describe}), got nothing`);
    if (many) args[name] = mine;
    else if (mine[0] !== undefined) args[name] = argOf(positional, mine[0]);
  }
  const extra = words[used];
  if (extra === undefined) return args;
  const near = nearest(
    extra,
    subcommands.map(({ name }) => name),
  );
  const [only] = positionals.length === 1 ? positionals : [];
  // The shell puts the names of all files in place of a pattern without quotes.
  const quotes = only?.name === "manifest" ? ", or a pattern in quotes" : "";
  const one = only && used > 0 ? `; expected only one ${only.name}${quotes}` : "";
  const hint = near === undefined ? one : `. Did you mean ${near}?`;
  throw new EarlyExit("usage", `unexpected argument ${JSON.stringify(extra)}${hint}`);
}

function argOf({ name, parse }: Positional, word: string): unknown {
  // As a path, it would mean the current folder.
  if (word.trim() === "")
    throw new EarlyExit(
      "usage",
      `${name}: expected a value, got an empty text. A shell variable without a value leaves one`,
    );
  if (!parse) return word;
  try {
    return parse(word);
  } catch (error) {
    if (error instanceof FlagError) throw new EarlyExit("usage", `${name}: ${error.message}`);
    throw error;
  }
}

function unknownCommand(commands: readonly CommandDefinition[], [word = ""]: readonly string[]): EarlyExit {
  const hint = "See `bulkgen --help`.";
  if (word.startsWith("-")) return new EarlyExit("usage", `expected a command before ${word}. ${hint}`);
  const near = nearest(
    word,
    commands.map(({ name }) => name),
  );
  const meant = near === undefined ? "" : ` Did you mean ${near}?`;
  return new EarlyExit("usage", `unknown command ${JSON.stringify(word)}.${meant} ${hint}`);
}
