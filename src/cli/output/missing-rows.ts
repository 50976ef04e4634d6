import { type ExitName, weightiest } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import { count } from "../../text/amounts.js";
import { terminalText } from "../../text/terminal.js";
import type { MissingRow } from "../../upkeep/archive/sheet-rows.js";

const missingShown = 10;

/** Says which picks are lost, and what to do, if any are. */
export function sayLostPicks(lost: string | null, { stderr }: Pick<Machine, "stderr">): void {
  if (lost !== null) stderr.write(`bulkgen: ${terminalText(lost)}.\n`);
}

/** Names the rows without a final file, which decide the exit code; undefined if there are none. */
export function sayMissing(
  missing: readonly MissingRow[],
  { stderr }: Pick<Machine, "stderr">,
): ExitName | undefined {
  if (missing.length === 0) return undefined;
  stderr.write(`${count(missing.length, "row has", "rows have")} no final file:\n`);
  for (const { row, rowId, reason } of missing.slice(0, missingShown))
    stderr.write(`  row ${row}${rowId === "" ? "" : ` (${terminalText(rowId)})`}: ${terminalText(reason)}\n`);
  if (missing.length > missingShown) stderr.write(`  and ${missing.length - missingShown} more\n`);
  return weightiest(missing.map(({ exit }) => exit));
}

/** Says which files of a final set do not go together. */
export function sayMixed(mixed: string | null, { stderr }: Pick<Machine, "stderr">): void {
  if (mixed !== null) stderr.write(`${terminalText(mixed)}\n`);
}
