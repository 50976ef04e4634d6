import { type Problem, partOf } from "../core/problem.js";
import type { Sheet } from "../core/sheet.js";
import type { Manifest, Row } from "../manifest/manifest.js";

/** The sheet as people wrote it, each row with the items that it stands for or the reason why it stands for none. */
export function sheetOf(
  manifest: Manifest,
  keys: ReadonlyMap<Row, string[]>,
  problems: readonly Problem[],
): Sheet {
  const wrong = new Map<string, string>();
  for (const { place, message } of problems) {
    if (!wrong.has(partOf(place))) wrong.set(partOf(place), message);
  }
  return {
    columns: manifest.columns,
    rows: manifest.rows.map((row) => ({
      number: row.number,
      cells: row.columns,
      keys: keys.get(row) ?? [],
      problem: wrong.get(partOf({ row: row.number })) ?? wrong.get(partOf(row.place)) ?? null,
    })),
  };
}
