import type { Problem } from "../core/problem.js";
import type { Sheet } from "../core/sheet.js";
import type { Manifest, Row } from "../manifest/manifest.js";

/** The sheet as people wrote it, each row with the items that it stands for or the reason why it stands for none. */
export function sheetOf(
  manifest: Manifest,
  keys: ReadonlyMap<Row, string[]>,
  problems: readonly Problem[],
): Sheet {
  const wrong = new Map<number | null, string>();
  for (const { place, message } of problems) if (!wrong.has(place.row)) wrong.set(place.row, message);
  return {
    columns: manifest.columns,
    rows: manifest.rows.map((row) => ({
      number: row.number,
      cells: row.columns,
      keys: keys.get(row) ?? [],
      problem: wrong.get(row.number) ?? null,
    })),
  };
}
