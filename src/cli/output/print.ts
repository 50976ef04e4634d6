import type { Machine } from "../../machine.js";
import { type TerminalStyle, terminalStyle } from "../../text/table.js";

/** Prints the result of a command: with `--json` the document in one line, otherwise the text for people. */
export function print(
  { json }: { json?: boolean },
  { stdout, env }: Machine,
  document: unknown,
  text: (look: TerminalStyle) => string,
): void {
  stdout.write(`${json ? JSON.stringify(document) : text(terminalStyle(stdout, env))}\n`);
}
