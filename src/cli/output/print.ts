import type { DocumentName, Documents } from "../../documents/documents.js";
import type { SameType } from "../../documents/same-type.js";
import type { Machine } from "../../machine.js";
import { jsonText } from "../../text/terminal.js";
import { type TerminalStyle, terminalStyle } from "../../text/terminal-style.js";

/** The name of the schema that describes exactly this: with the name of another one, a call does not compile. */
type NameOf<Name extends DocumentName, Made> = SameType<Made, Documents[Name]> extends true ? Name : never;

/**
 * Prints the result of a command: with `--json` the document in one line, otherwise the text for people. `_name` is for
 * the compiler, which checks the document by it.
 */
export function print<Name extends DocumentName, Made>(
  { json }: { json?: boolean },
  { stdout, env }: Pick<Machine, "stdout" | "env">,
  _name: Name & NameOf<Name, Made>,
  document: Made,
  text: (style: TerminalStyle) => string,
): void {
  stdout.write(`${json ? jsonText(document) : text(terminalStyle(stdout, env))}\n`);
}
