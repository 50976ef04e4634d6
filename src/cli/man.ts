import { exitCodes } from "../core/exit.js";
import { type CommandDefinition, commandGroups } from "./command-list.js";
import { calledAs, flagEntries } from "./help.js";
import { topics } from "./topics.js";

/** Manual pages, from the definitions that the help is made of: one of the program, one a command, and one a topic. */

/** Pages by the names of their files, such as `bulkgen-run.1`. */
export function manPages(commands: readonly CommandDefinition[], version: string): Map<string, string> {
  const pages = new Map([["bulkgen.1", programPage(commands, version)]]);
  const add = (path: readonly CommandDefinition[]) => {
    const name = ["bulkgen", ...path.map((each) => each.name)].join("-");
    pages.set(`${name}.1`, commandPage(name, path, version));
    for (const each of path.at(-1)?.subcommands ?? []) add([...path, each]);
  };
  for (const command of commands) add([command]);
  for (const topic of topics) {
    const name = `bulkgen-${topic.name}`;
    const body = topic.text().split("\n").map(plain);
    const about = [".SH DESCRIPTION", ".nf", ...body, ".fi"];
    pages.set(
      `${name}.7`,
      [...head(name, 7, version, topic.describe), ...about, ...seeAlso(["bulkgen(1)"])].join("\n"),
    );
  }
  return pages;
}

function programPage(commands: readonly CommandDefinition[], version: string): string {
  const described = "bulk generation of images, video and audio from a spreadsheet";
  return [
    ...head("bulkgen", 1, version, described),
    ".SH SYNOPSIS",
    ".B bulkgen",
    plain("<command> [options]"),
    ...commandGroups.flatMap((group) => [
      `.SH ${plain(group.toUpperCase())}`,
      ...commands
        .filter((each) => each.group === group)
        .flatMap((each) => item(calledAs(each), each.describe)),
    ]),
    ...exitStatus(),
    ...seeAlso([
      ...commands.map(({ name }) => `bulkgen-${name}(1)`),
      ...topics.map(({ name }) => `bulkgen-${name}(7)`),
    ]),
  ].join("\n");
}

function commandPage(name: string, path: readonly CommandDefinition[], version: string): string {
  const command = path.at(-1) as CommandDefinition;
  const { positionals = [], subcommands = [], flags = {}, examples = [], note } = command;
  const above = ["bulkgen", ...path.slice(0, -1).map((each) => each.name)].join(" ");
  const shown = flagEntries(flags);
  const groups = [...new Set(shown.map(({ group }) => group))];
  return [
    ...head(name, 1, version, command.describe),
    ".SH SYNOPSIS",
    `.B ${plain(above)}`,
    plain(calledAs(command, command.load ? "[options]" : "[options] <command>")),
    ...titled(
      "ARGUMENTS",
      positionals.flatMap((each) => item(each.name, each.describe)),
    ),
    ...titled(
      "COMMANDS",
      subcommands.flatMap((each) => item(calledAs(each), each.describe)),
    ),
    ...groups.flatMap((group) => [
      `.SH ${plain(group.replace(/:$/, "").toUpperCase())}`,
      ...shown.filter((each) => each.group === group).flatMap(({ entry: [term, text] }) => item(term, text)),
    ]),
    ...titled("EXAMPLES", examples.length === 0 ? [] : [".nf", ...examples.map(plain), ".fi"]),
    ...titled("NOTES", note === undefined ? [] : [".nf", ...note.split("\n").map(plain), ".fi"]),
    ...exitStatus(),
    ...seeAlso(["bulkgen(1)"]),
  ].join("\n");
}

function head(name: string, section: 1 | 7, version: string, describe: string): string[] {
  return [
    `.TH ${quoted(name.toUpperCase())} ${section} "" ${quoted(`bulkgen ${version}`)} "bulkgen"`,
    ".SH NAME",
    `${plain(name)} \\- ${plain(describe)}`,
  ];
}

function titled(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`.SH ${title}`, ...lines];
}

function item(term: string, text: string): string[] {
  return [".TP", `.B ${quoted(term)}`, plain(text)];
}

function exitStatus(): string[] {
  return titled(
    "EXIT STATUS",
    exitCodes.flatMap(({ code, meaning }) => item(String(code), meaning)),
  );
}

function seeAlso(pages: readonly string[]): string[] {
  return [".SH SEE ALSO", plain(pages.join(", ")), ""];
}

/** Text in which nothing is a request or an escape of roff, and nothing is beyond ASCII. */
function plain(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/[^ -~]/gu, (sign) => `\\[u${sign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}]`)
    .replace(/^(?=[.'])/, "\\&");
}

/** Plain text in quotes: one argument of a roff request. */
function quoted(text: string): string {
  return `"${plain(text).replaceAll('"', '""')}"`;
}
