import { createHash } from "node:crypto";
import { mediaFields } from "../api/inputs.js";
import type { Item, SheetRow } from "../core/ports/store.js";
import type { Problem } from "../core/problem.js";
import type { Draft } from "../store/draft/draft.js";
import { count } from "../text/amounts.js";
import { nearest } from "../text/nearest.js";
import type { CheckedRow } from "./check-row.js";
import type { Plan, Selection } from "./plan.js";

/** A selectable thing: a row of a sheet, or an item with its row. */
export interface Selectable {
  number: number;
  /** The value by which the sample is drawn, so that it does not depend on other rows. */
  name: string;
  failed: boolean;
  /** Values by lower-case key: columns, `params.KEY` and what bulkgen knows of it. */
  values: ReadonlyMap<string, string>;
}

export function isEverything(selection: Selection): boolean {
  const { filters, onlyFailed, range, sample, first } = selection;
  return filters.length === 0 && !onlyFailed && range === null && sample === null && first === null;
}

/** The selected ones, in their own order. */
export function select<Row extends Selectable>(rows: readonly Row[], selection: Selection): Row[] {
  const { onlyFailed, sample, seed, first } = selection;
  const matches = matcherOf(selection);
  const matching = rows.filter((row) => (!onlyFailed || row.failed) && matches(row));
  const drawn = sample === null ? matching : drawLots(matching, sample, seed);
  return first === null ? drawn : drawn.slice(0, first);
}

/** Whether filters and range select a row. */
export function matcherOf({
  filters,
  range,
}: Selection): (row: Pick<Selectable, "number" | "values">) => boolean {
  const keys = new Map<string, RegExp[]>();
  for (const { key, pattern } of filters) {
    const folded = key.toLowerCase();
    keys.set(folded, [...(keys.get(folded) ?? []), matcher(pattern)]);
  }
  return ({ number, values }) =>
    (range === null || (number >= range.from && number <= range.to)) &&
    [...keys].every(([key, patterns]) => patterns.some((one) => one.test(values.get(key) ?? "")));
}

/** Finds the keys of filters that no row has. */
export class KeyWatch {
  private readonly wanted: Map<string, string>;
  private readonly known = new Set<string>();

  constructor({ filters }: Selection) {
    this.wanted = new Map(filters.map(({ key }) => [key.toLowerCase(), key]));
  }

  see(values: Selectable["values"]): void {
    if (this.wanted.size === 0) return;
    for (const key of values.keys()) {
      this.wanted.delete(key);
      this.known.add(key);
    }
  }

  /** Keys that no row has, each with the nearest that some row has. */
  unknown(): { key: string; near: string | undefined }[] {
    return [...this.wanted.values()].map((key) => ({ key, near: nearest(key, this.known) }));
  }
}

/** The selection as it was asked for, in the words of the flags. */
export function selectionText({ filters, onlyFailed, range, sample, seed, first }: Selection): string {
  return [
    ...filters.map(({ key, pattern }) => `--filter ${key}=${pattern}`),
    ...(onlyFailed ? ["--only-failed"] : []),
    ...(range === null ? [] : [`--range ${range.from}:${Number.isFinite(range.to) ? range.to : ""}`]),
    ...(sample === null ? [] : [`--sample ${sample}`]),
    ...(seed === "" ? [] : [`--seed ${seed}`]),
    ...(first === null ? [] : [`--first ${first}`]),
  ].join(" ");
}

function matcher(pattern: string): RegExp {
  const source = pattern
    .trim()
    .normalize("NFC")
    .replaceAll(/[\\^$.|+()[\]{}]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${source}$`, "isu");
}

/** The rows with the lowest hash: adding or removing a row changes the sample by at most one. */
function drawLots<Row extends Selectable>(rows: readonly Row[], count: number, seed: string): Row[] {
  const lots = rows.map((row) => ({ row, lot: lotOf(row.name, seed) }));
  const drawn = new Set(
    lots
      .toSorted((a, b) => (a.lot < b.lot ? -1 : a.lot > b.lot ? 1 : a.row.number - b.row.number))
      .slice(0, count)
      .map(({ row }) => row),
  );
  return rows.filter((row) => drawn.has(row));
}

/** A row's lot: the hash of its name with the seed. */
export function lotOf(name: string, seed: string): string {
  return createHash("sha256").update(`${seed}\n${name}`).digest("hex");
}

type Content = Pick<Item, "model" | "prompt" | "params" | "inputs" | "priority">;

/** A row's values as a selection sees them: its cells, and what the defaults made of them. */
function valuesOfRow({ row, params, model }: CheckedRow): Map<string, string> {
  const { id, output } = row;
  const content = { ...row, params: { ...row.params, ...params } };
  return valuesOf(Object.entries(row.columns), content, { id, output, category: model?.category });
}

/** A row that an item stands for. */
export type RowOfSheet = Pick<SheetRow, "number" | "cells">;

/**
 * An item as a selection sees it in one of its rows: identical rows may share it. Without a row, it is the one that it was
 * made for. `more` are columns besides the cells of the row.
 */
export function selectableItem(
  item: Item,
  more: Readonly<Record<string, string>> = {},
  row?: RowOfSheet,
): Selectable & { item: Item } {
  const { rowNumber, rowId, state, name, category } = item;
  const isOther = row !== undefined && row.number !== rowNumber;
  const { id = rowId, output = name } = isOther ? row.cells : {};
  const cells = isOther ? Object.entries(row.cells) : item.cells;
  return {
    item,
    number: row?.number ?? rowNumber,
    name: id,
    failed: state === "failed",
    values: valuesOf(cells, item, { id, output, category, state, ...more }),
  };
}

function valuesOf(
  cells: Item["cells"],
  { model, prompt, params, inputs, priority }: Content,
  known: Readonly<Record<string, string | null | undefined>>,
): Map<string, string> {
  const values = new Map<string, string>();
  const put = (key: string, value: string | null | undefined) => {
    if (value !== null && value !== undefined) values.set(key.toLowerCase(), value.trim().normalize("NFC"));
  };
  for (const [column, cell] of cells) put(column, cell);
  for (const [key, value] of Object.entries(params)) put(`params.${key}`, value);
  for (const field of mediaFields) put(field, inputs[field]);
  for (const [key, value] of Object.entries({ model, prompt, priority: String(priority), ...known }))
    put(key, value);
  return values;
}

/** Selects rows of a sheet while it is read. Problems in other rows are only counted in a note. */
export class Choosing {
  private readonly everything: boolean;
  private readonly matches: ReturnType<typeof matcherOf>;
  private readonly keys: KeyWatch;

  constructor(
    private readonly selection: Selection,
    private readonly file: string,
  ) {
    this.everything = isEverything(selection);
    this.matches = matcherOf(selection);
    this.keys = new KeyWatch(selection);
  }

  of(checked: CheckedRow): { chosen: boolean; lot: string | null } {
    if (this.everything) return { chosen: true, lot: null };
    const { row } = checked;
    const values = valuesOfRow(checked);
    this.keys.see(values);
    const { sample, seed } = this.selection;
    const lot = sample === null ? null : lotOf(row.id ?? String(row.number), seed);
    return { chosen: this.matches({ number: row.number, values }), lot };
  }

  /** Leaves only the chosen rows in the draft. */
  finish(draft: Draft): { selection: Plan["selection"]; notes: string[] } {
    if (this.everything) return { selection: null, notes: [] };
    const { selection, file } = this;
    const values = (id: string | null) => new Map(id === null ? [] : [["id", id]]);
    const rows = draft.choose({
      ...selection,
      matches: ({ number, id }) => this.matches({ number, values: values(id) }),
    });
    const { rows: of, hidden } = draft.counts();
    const text = selectionText(selection);
    const unknown = this.keys.unknown();
    for (const { key, near } of unknown) draft.problem(unknownProblem(file, key, near));
    if (rows === 0 && unknown.length === 0 && !selection.onlyFailed)
      draft.problem(noRowProblem(file, text, of));
    const left = count(hidden, "problem");
    return {
      selection: { text, rows, of },
      notes: hidden === 0 ? [] : [`${left} in rows that are not selected`],
    };
  }
}

function unknownProblem(file: string, key: string, near: string | undefined): Problem {
  return {
    place: { file, row: null },
    message: `--filter names "${key}", which no row has`,
    expected: "a column of the sheet, params.KEY, id, model, prompt, category, output or priority",
    got: key,
    ...(near === undefined ? {} : { nearest: near }),
  };
}

function noRowProblem(file: string, text: string, of: number): Problem {
  return {
    place: { file, row: null },
    message: `no row is selected by ${text}`,
    expected: `at least one of the ${count(of, "row")}`,
    got: "none",
  };
}
