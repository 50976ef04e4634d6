import { type FlagDefinition, nameOf } from "../options/definition.js";
import { type CommandDefinition, type CommandGroup, commandGroups } from "./command-list.js";
import { topics } from "./topics.js";

/** The help of commands, from their definitions. It needs neither yargs nor the commands themselves. */

const widthMax = 100;
const termMax = 32;

/** One line of a list: what it is about, and the description. */
type Entry = readonly [term: string, text: string];

/** The help of the program: its commands, the most used first. */
export function programHelp(commands: readonly CommandDefinition[], columns = 80): string {
  const entries = (group: CommandGroup) =>
    commands.filter((each) => each.group === group).map((each): Entry => [calledAs(each), each.describe]);
  return [
    "Usage: bulkgen <command> [options]",
    "",
    ...wrapped("Bulk generation of images, video and audio from a spreadsheet.", columns),
    ...commandGroups.flatMap((group) => list(`${group}:`, entries(group), columns)),
    "",
    ...section(
      "Options:",
      [
        ["-V, --version", "print the version"],
        ["-h, --help", "show help; for a command: bulkgen help run"],
      ],
      columns,
    ),
    ...list(
      "Topics (bulkgen help <topic>):",
      topics.map(({ name, describe }): Entry => [name, describe]),
      columns,
    ),
  ].join("\n");
}

/** The help of a command; `path` also has the commands above it. */
export function commandHelp(path: readonly CommandDefinition[], columns = 80): string {
  const command = path.at(-1) as CommandDefinition;
  const { positionals = [], subcommands = [], flags = {}, examples = [], note } = command;
  const above = path.slice(0, -1).map(({ name }) => name);
  const usage = [...above, calledAs(command, command.load ? "[options]" : "[options] <command>")];
  const shown = [...flagEntries(flags), { group: "Options:", entry: ["-h, --help", "show help"] as Entry }];
  const inGroup = (group: string) => shown.filter((each) => each.group === group).map(({ entry }) => entry);
  const groups = [...new Set(["Options:", ...shown.map(({ group }) => group)])];
  return [
    `Usage: bulkgen ${usage.join(" ")}`,
    "",
    ...wrapped(command.describe, Math.min(columns, widthMax)),
    ...list(
      "Arguments:",
      positionals.map(({ name, describe }): Entry => [name, describe]),
      columns,
    ),
    ...list(
      "Commands:",
      subcommands.map((each): Entry => [calledAs(each), each.describe]),
      columns,
    ),
    ...groups.flatMap((group) => list(group, inGroup(group), columns)),
    ...(examples.length === 0 ? [] : ["", "Examples:", ...examples.map((line) => `  ${line}`)]),
    ...(note === undefined ? [] : ["", ...wrapped(note, Math.min(columns, widthMax))]),
  ].join("\n");
}

/** A command with its arguments, such as `run <manifest>`. */
export function calledAs({ name, positionals = [] }: CommandDefinition, ...options: string[]): string {
  const args = positionals.map(({ name, required, many }) => {
    const text = many ? `${name}...` : name;
    return required ? `<${text}>` : `[${text}]`;
  });
  return [name, ...options, ...args].join(" ");
}

/** Flags with their descriptions, as the help and the docs show them. */
export function flagEntries(
  flags: Readonly<Record<string, FlagDefinition>>,
): { group: string; entry: Entry }[] {
  return Object.entries(flags).map(([attribute, flag]) => {
    const { group = "Options:", short, value, describe } = flag;
    const name = `--${nameOf(attribute)}${value === null ? "" : ` ${value}`}`;
    const fallback = flag.defaultText ?? (flag.default === undefined ? "" : String(flag.default));
    const text = fallback === "" ? describe : `${describe} (default: ${fallback})`;
    const negated = flag.negatable ? `, --no-${nameOf(attribute)}` : "";
    return { group, entry: [`${short ? `-${short}, ` : ""}${name}${negated}`, text] };
  });
}

function list(heading: string, entries: readonly Entry[], columns: number): string[] {
  return entries.length === 0 ? [] : ["", ...section(heading, entries, columns)];
}

function section(heading: string, entries: readonly Entry[], columns: number): string[] {
  const longest = Math.max(...entries.map(([term]) => term.length));
  // On a narrow terminal the descriptions have half of it, and a longer term a line of its own.
  const term = Math.min(longest, termMax, Math.max(8, Math.floor(columns / 2) - 4));
  const indent = term + 4;
  const width = Math.max(20, Math.min(columns, widthMax) - indent);
  const lines = entries.flatMap(([name, text]) => {
    const [first = "", ...more] = wrapped(text, width);
    const rest = more.map((line) => " ".repeat(indent) + line);
    const isLong = name.length > term;
    return isLong
      ? [`  ${name}`, " ".repeat(indent) + first, ...rest]
      : [`  ${name}`.padEnd(indent) + first, ...rest];
  });
  return [heading, ...lines];
}

/** The text in lines of at most this width, broken at blanks. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
