import { createHash } from "node:crypto";
import { nearest } from "../text/nearest.js";

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
  const { onlyFailed, sample, seed, first } = selection;
  const matches = matcherOf(selection);
  const matching = rows.filter((row) => (!onlyFailed || row.failed) && matches(row));
  const drawn = sample === null ? matching : drawLots(matching, sample, seed);
  return first === null ? drawn : drawn.slice(0, first);
}

/** Whether a row is one of those that filters and range leave. */
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

/** Looks whether the keys of filters are those of some row. */
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

/** Keys of filters that no row has. */
export function unknownKeys(
  rows: readonly Selectable[],
  selection: Selection,
): ReturnType<KeyWatch["unknown"]> {
  const watch = new KeyWatch(selection);
  for (const { values } of rows) watch.see(values);
  return watch.unknown();
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

/** The rows whose lot is lowest: a row that is added or taken away changes the draw by one at most. */
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
