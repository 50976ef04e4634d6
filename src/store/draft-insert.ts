import type { DraftItem, DraftRow } from "../core/draft.js";
import type { Sqlite } from "../sqlite.js";
import type { Progress } from "./draft-tables.js";

/** What every record has; the others have defaults. */
const usual = [
  ...["position", "row", "number", "id", "cells", "key", "priority", "row_id", "name", "model", "category"],
  ...["prompt", "params", "price", "price_group"],
];
const unusual = [
  ...["first", "copy", "repeat", "problem", "without", "chosen", "wanted", "lot", "shared", "shares"],
  ...["occurrence", "head", "inputs", "contents"],
];

type Insert = (row: DraftRow, item: DraftItem | undefined, first: boolean) => void;

/**
 * Puts records into a draft. Nearly all are alike: a row that makes one item which nobody else asks for. For a million of
 * them every value that is handed over is felt, so what is usual goes in by itself.
 */
export function draftInsert(db: Sqlite, progress: Progress): Insert {
  const insert = (columns: readonly string[]) =>
    db.prepare(`INSERT INTO drafted (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`);
  const plain = insert(usual);
  const full = insert([...usual, ...unusual]);
  return (row, item, first) => {
    const { number, id } = row;
    const position = progress.records++;
    const cells = JSON.stringify(row.cells);
    if (item === undefined) {
      const none = [null, 0, null, null, null, null, null, null, null, null];
      full.run(position, progress.rows, number, id, cells, ...none, ...unusualValues(row, item, first));
      return;
    }
    const { key, priority, rowId, name, model, category, prompt, price, group } = item;
    if (priority !== 0) progress.prioritised = true;
    const params = JSON.stringify(item.params);
    if (first && isUsual(row, item))
      plain.run(
        position,
        progress.rows,
        number,
        id,
        cells,
        key,
        priority,
        rowId,
        name,
        model,
        category,
        prompt,
        params,
        price,
        group,
      );
    else
      full.run(
        ...[position, progress.rows, number, id, cells, key, priority, rowId, name, model, category, prompt],
        ...[params, price, group],
        ...unusualValues(row, item, first),
      );
  };
}

function isUsual(row: DraftRow, { head, occurrence, inputs }: DraftItem): boolean {
  if (head !== null || occurrence !== 1 || row.repeat !== 1 || !row.chosen || row.lot !== null) return false;
  for (const _ in inputs) return false;
  return row.problem === null && row.shares === null && row.without.length === 0;
}

/** What belongs to a row as a whole stands in its first record. */
function unusualValues(row: DraftRow, item: DraftItem | undefined, first: boolean): unknown[] {
  const { repeat, problem, without, lot } = row;
  const chosen = row.chosen ? 1 : 0;
  const shares = first ? row.shares : null;
  const inputs = item?.inputs ?? {};
  const contents = item === undefined || item.contents === inputs ? null : JSON.stringify(item.contents);
  return [
    ...[first ? 1 : 0, item?.copy ?? 1, repeat, problem],
    first && without.length > 0 ? JSON.stringify(without) : null,
    ...[chosen, chosen, lot, shares?.head ?? null, shares?.items ?? null],
    ...[item?.occurrence ?? 1, item?.head ?? null, JSON.stringify(inputs), contents],
  ];
}
