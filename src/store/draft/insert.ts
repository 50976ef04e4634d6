import type { DraftItem, DraftRow, ItemKind } from "../../core/ports/draft.js";
import type { Problem } from "../../core/problem.js";
import type { Sqlite } from "../../sqlite.js";
import type { Listing } from "../../text/listing.js";
import { listing } from "./read.js";
import type { DraftProgress } from "./tables.js";

/** What every record has; the others have defaults. */
const usual = [
  "position",
  "row",
  "number",
  "id",
  "cells",
  "key",
  "priority",
  "kind",
  "row_id",
  "name",
  "prompt",
];
const unusual = [
  "first",
  "copy",
  "repeat",
  "problem",
  "without",
  "chosen",
  "wanted",
  "lot",
  "shared",
  "shares",
  "occurrence",
  "head",
  "approve",
  "inputs",
  "contents",
  "step",
];

type Insert = (row: DraftRow, item: DraftItem | undefined, first: boolean) => void;

/**
 * Inserts records into a draft. Nearly all are alike: a row with one item of its own, named by its id. With a million
 * records each bound value costs time, so usual values are defaults, and common values are inserted once.
 */
export function draftInsert(
  db: Sqlite,
  progress: DraftProgress,
): { put: Insert; kindOf(kind: ItemKind): number; clear(): void } {
  const insert = (columns: readonly string[]) =>
    db.prepare(`INSERT INTO drafted (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`);
  const plain = insert(usual);
  const full = insert([...usual, ...unusual]);
  const kinds = kindNumbers(db);
  return {
    put(row, item, first) {
      const { number, id } = row;
      const position = progress.records++;
      const cells = JSON.stringify(row.cells);
      if (item === undefined) {
        const none = [null, 0, null, null, null, null];
        full.run(position, progress.rows, number, id, cells, ...none, ...unusualValues(row, item, first));
        return;
      }
      const { key, priority, prompt } = item;
      if (priority !== 0) progress.prioritised = true;
      if (item.approve) progress.approves = true;
      progress.tally.add(item);
      const kind = kinds.of(item.kind);
      const rowId = item.rowId === id ? null : item.rowId;
      const name = item.name === item.rowId ? null : item.name;
      if (first && isUsual(row, item))
        plain.run(position, progress.rows, number, id, cells, key, priority, kind, rowId, name, prompt);
      else
        full.run(
          position,
          progress.rows,
          number,
          id,
          cells,
          key,
          priority,
          kind,
          rowId,
          name,
          prompt,
          ...unusualValues(row, item, first),
        );
    },

    kindOf: kinds.of,

    clear: kinds.clear,
  };
}

const keptMax = 2_000;

/** Each kind is inserted once, up to the number that is kept. */
function kindNumbers(db: Sqlite): { of(kind: ItemKind): number; clear(): void } {
  const insert = db.prepare(
    "INSERT INTO kinds (model, category, params, price, price_group) VALUES (?, ?, ?, ?, ?)",
  );
  const kept = new Map<ItemKind, number>();
  return {
    of(kind) {
      const known = kept.get(kind);
      if (known !== undefined) return known;
      const { model, category, params, price, group } = kind;
      const number = Number(
        insert.run(model, category, JSON.stringify(params), price, group).lastInsertRowid,
      );
      if (kept.size < keptMax) kept.set(kind, number);
      return number;
    },

    clear: () => kept.clear(),
  };
}

function isUsual(row: DraftRow, { head, occurrence, approve, inputs }: DraftItem): boolean {
  if (approve || head !== null || occurrence !== 1 || row.repeat !== 1 || !row.chosen || row.lot !== null)
    return false;
  for (const _ in inputs) return false;
  if (row.step !== null) return false;
  return row.problem === null && row.shares === null && row.without.length === 0;
}

/** Facts about the whole row are in its first record. */
function unusualValues(row: DraftRow, item: DraftItem | undefined, first: boolean): unknown[] {
  const { repeat, problem, without, lot } = row;
  const chosen = row.chosen ? 1 : 0;
  const shares = first ? row.shares : null;
  const inputs = item?.inputs ?? {};
  const contents = item === undefined || item.contents === inputs ? null : JSON.stringify(item.contents);
  return [
    first ? 1 : 0,
    item?.copy ?? 1,
    repeat,
    problem,
    first && without.length > 0 ? JSON.stringify(without) : null,
    chosen,
    chosen,
    lot,
    shares?.head ?? null,
    shares?.items ?? null,
    item?.occurrence ?? 1,
    item?.head ?? null,
    item?.approve ? 1 : 0,
    JSON.stringify(inputs),
    contents,
    row.step,
  ];
}

/** The problems of a plan: there may be as many as rows. */
export interface Problems {
  put(problem: Problem): void;
  all(): Listing<Problem>;
  clear(): void;
}

export function draftProblems(db: Sqlite): Problems {
  const insert = db.prepare("INSERT INTO problems (row, row_id, document) VALUES (?, ?, ?)");
  // Nearly always they come in the order of the sheet; sorting a million takes longer than reading them.
  let sorted = true;
  let last = 0;
  return {
    put(problem) {
      const row = problem.place.row ?? 0;
      if (row < last) sorted = false;
      last = row;
      insert.run(row, problem.place.id ?? null, JSON.stringify(problem));
    },

    all: () =>
      listing(
        db,
        `SELECT document FROM problems WHERE NOT hidden ORDER BY ${sorted ? "id" : "row, id"}`,
        (row) => JSON.parse(row["document"] as string) as Problem,
      ),

    clear() {
      sorted = true;
      last = 0;
    },
  };
}
