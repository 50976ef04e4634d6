import type { Machine } from "../../machine.js";
import { type TerminalStyle, terminalStyle } from "../../text/table.js";
import { jsonText } from "../../text/terminal.js";

/** Prints the result of a command: with `--json` the document in one line, otherwise the text for people. */
export function print(
  { json }: { json?: boolean },
  { stdout, env }: Machine,
  document: unknown,
  text: (look: TerminalStyle) => string,
): void {
  stdout.write(`${json ? jsonText(document) : text(terminalStyle(stdout, env))}\n`);
}
