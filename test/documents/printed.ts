import { commandList, leadingCommands } from "../../src/cli/command-list.js";
import { parseLine } from "../../src/cli/parse.js";
import { isRefusal } from "../../src/core/exit.js";
import { type DocumentDefinition, type DocumentName, documents } from "../../src/documents/documents.js";

/** A document that a command printed, and the name of its schema. */
export interface PrintedDocument {
  name: DocumentName;
  value: unknown;
}

/**
 * The documents that a command printed with `--json` or `--events`. Throws for one that none of its schemas describes: an
 * unknown key is an error.
 */
export function printedBy(args: readonly string[], stdout: string): PrintedDocument[] {
  const flags = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined);
  const isEvents = flags.includes("--events");
  if (stdout === "" || !(isEvents || flags.includes("--json")) || flags.includes("--help")) return [];
  if (isEvents)
    return lines(stdout).map((line) => described(["event"], JSON.parse(line), `${args.join(" ")}`));
  const value: unknown = JSON.parse(stdout);
  // A line that cannot be parsed is refused too.
  const names: DocumentName[] = isRefusal(value) ? ["refusal"] : documentsOf(parsedPath(args));
  return [described(names, value, args.join(" "))];
}

/** The command that a line begins with, such as `schedule show` of `schedule show NAME`. */
function commandPath(args: readonly string[]): string {
  const words = args.filter((word) => !word.startsWith("-"));
  return leadingCommands(commandList, words)
    .map(({ name }) => name)
    .join(" ");
}

function parsedPath(args: readonly string[]): string {
  return parseLine(commandList, args)
    .path.map(({ name }) => name)
    .join(" ");
}

/** The names of what a command may print. */
export function documentsOf(path: string): DocumentName[] {
  return Object.entries<DocumentDefinition>(documents).flatMap(([name, { commands = [] }]) =>
    commands.some((line) => commandPath(line.split(" ")) === path) ? [name as DocumentName] : [],
  );
}

function described(names: readonly DocumentName[], value: unknown, line: string): PrintedDocument {
  const name = names.find((each) => documents[each].schema.safeParse(value).success);
  if (name !== undefined) return { name, value };
  const why = names.map((each) => `${each}: ${documents[each].schema.safeParse(value).error?.message}`);
  throw new Error(`no schema describes what \`bulkgen ${line}\` printed.\n${why.join("\n")}`);
}

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}
