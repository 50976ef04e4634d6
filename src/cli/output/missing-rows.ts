import { type ExitName, weightiest } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import { terminalText } from "../../text/terminal.js";
import { type MissingRow, missingText } from "../../upkeep/archive/sheet-rows.js";

/** Says which picks are lost, and what to do, if any are. */
export function sayLostPicks(lost: string | null, { stderr }: Pick<Machine, "stderr">): void {
  if (lost !== null) stderr.write(`bulkgen: ${terminalText(lost)}.\n`);
}

/** Names the rows without a final file, which decide the exit code; undefined if there are none. */
export function sayMissing(
  missing: readonly MissingRow[],
  { stderr }: Pick<Machine, "stderr">,
): ExitName | undefined {
  const text = missingText(missing);
  if (text === null) return undefined;
  stderr.write(`${text}\n`);
  return weightiest(missing.map(({ exit }) => exit));
}

/** Says which files of a final set do not go together. */
export function sayMixed(mixed: string | null, { stderr }: Pick<Machine, "stderr">): void {
  if (mixed !== null) stderr.write(`${terminalText(mixed)}\n`);
}
