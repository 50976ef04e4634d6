import { createHash } from "node:crypto";
import { nearest } from "../core/nearest.js";

/**
 * Which rows a command is about. Everything is counted over the whole sheet first (identical rows, names, prices), so
 * a row is the same item whether it is selected alone or with all the others; and what is not selected is left as it
 * is, which is something else than a row that is gone.
 */
export interface Selection {
  /** Values of one key are alternatives; every key must match. */
  filters: readonly Filter[];
  /** Rows whose item failed, as it is now or as it was before the row was mended. */
  onlyFailed: boolean;
  /** Row numbers as the spreadsheet shows them, both ends included. */
  range: { from: number; to: number } | null;
  /** So many rows by lot; the same seed draws the same rows. */
  sample: number | null;
  seed: string;
  first: number | null;
}

export interface Filter {
  key: string;
  /** With `*` for any text and `?` for one character; capitals make no difference. */
  pattern: string;
}

export const everything: Selection = {
  filters: [],
  onlyFailed: false,
  range: null,
  sample: null,
  seed: "",
  first: null,
};

/** What can be selected: a row of a sheet, or an item with the row that it comes from. */
export interface Selectable {
  number: number;
  /** What the lot is drawn by, so that other rows may come and go. */
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
  const { filters, onlyFailed, range, sample, seed, first } = selection;
  const keys = new Map<string, RegExp[]>();
  for (const { key, pattern } of filters) {
    const folded = key.toLowerCase();
    keys.set(folded, [...(keys.get(folded) ?? []), matcher(pattern)]);
  }
  const matching = rows.filter(
    (row) =>
      (!onlyFailed || row.failed) &&
      (range === null || (row.number >= range.from && row.number <= range.to)) &&
      [...keys].every(([key, patterns]) => patterns.some((one) => one.test(row.values.get(key) ?? ""))),
  );
  const drawn = sample === null ? matching : drawLots(matching, sample, seed);
  return first === null ? drawn : drawn.slice(0, first);
}

/** Keys of filters that no row has, each with the nearest that some row has. */
export function unknownKeys(
  rows: readonly Selectable[],
  { filters }: Selection,
): { key: string; near: string | undefined }[] {
  const wanted = new Map(filters.map(({ key }) => [key.toLowerCase(), key]));
  for (const row of rows) {
    for (const key of wanted.keys()) if (row.values.has(key)) wanted.delete(key);
    if (wanted.size === 0) return [];
  }
  const known = new Set(rows.flatMap((row) => [...row.values.keys()]));
  return [...wanted.values()].map((key) => ({ key, near: nearest(key, known) }));
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

/** The rows whose hash with the seed is lowest: a row that is added or taken away changes the draw by one at most. */
function drawLots<Row extends Selectable>(rows: readonly Row[], count: number, seed: string): Row[] {
  const lots = rows.map((row) => ({
    row,
    lot: createHash("sha256").update(`${seed}\n${row.name}`).digest("hex"),
  }));
  const drawn = new Set(
    lots
      .toSorted((a, b) => (a.lot < b.lot ? -1 : a.lot > b.lot ? 1 : a.row.number - b.row.number))
      .slice(0, count)
      .map(({ row }) => row),
  );
  return rows.filter((row) => drawn.has(row));
}
