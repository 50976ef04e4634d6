import type { Model } from "../api/records.js";
import { itemKey, shortId } from "../core/identity.js";
import { type Credits, credits, times } from "../core/money.js";
import { priceGroup } from "../core/price.js";
import type { NewItem } from "../core/store.js";
import type { Row } from "../manifest/manifest.js";
import type { CheckedRow } from "./check-row.js";
import type { Finding } from "./plan.js";

export interface Scope {
  /** The highest charge seen for a price group. */
  charges: ReadonlyMap<string, Credits>;
  origin: string;
  account: string;
  edition: string;
}

/** A good row: one that has a model and no problem. */
export interface GoodRow extends CheckedRow {
  model: Model;
}

/**
 * Makes the items of good rows. Rows that ask for the very same thing are told apart by their occurrence, counted
 * over the whole manifest, so that which of them has which number does not matter to what is paid.
 */
export function expand(rows: readonly GoodRow[], scope: Scope): { items: NewItem[]; identical: Finding[] } {
  const seen = new Map<string, { occurrences: number; rows: GoodRow[] }>();
  const items: NewItem[] = [];
  for (const good of rows) {
    const first = keyOf(good, scope, 1);
    const same = seen.get(first) ?? { occurrences: 0, rows: [] };
    seen.set(first, same);
    same.rows.push(good);
    for (let copy = 1; copy <= good.row.repeat; copy++) {
      same.occurrences++;
      const key = same.occurrences === 1 ? first : keyOf(good, scope, same.occurrences);
      items.push(itemOf(good, scope, { key, copy, occurrence: same.occurrences, position: items.length }));
    }
  }
  return { items, identical: [...seen.values()].flatMap(identicalRows) };
}

function keyOf({ row, model, params, contents }: GoodRow, scope: Scope, occurrence: number): string {
  return itemKey({
    origin: scope.origin,
    account: scope.account,
    edition: scope.edition,
    model: model.model_key,
    prompt: row.prompt,
    params,
    inputs: contents,
    occurrence,
  });
}

interface Copy {
  key: string;
  /** 1 for the first item of the row. */
  copy: number;
  occurrence: number;
  position: number;
}

function itemOf({ row, model, params }: GoodRow, scope: Scope, made: Copy): NewItem {
  const { key, copy, occurrence, position } = made;
  const rowId = row.id === null ? shortId(key) : copyName(row.id, copy);
  return {
    key,
    edition: scope.edition,
    occurrence,
    variant: 1,
    position,
    priority: row.priority,
    rowNumber: row.number,
    rowId,
    name: row.output === null ? rowId : copyName(outputName(row.output), copy),
    model: model.model_key,
    category: model.category,
    prompt: row.prompt,
    params,
    inputs: row.inputs,
    cells: Object.entries(row.columns),
    // What was really charged for the same model and params says more than the list.
    price: scope.charges.get(priceGroup({ model: model.model_key, params })) ?? credits(model.credits_cost),
  };
}

/** `cup`, `cup-2`, `cup-3`: the first copy keeps the plain name, so that adding copies renames nothing. */
export function copyName(name: string, copy: number): string {
  return copy === 1 ? name : `${name}-${copy}`;
}

/** The output as wanted, without a media file's extension: the content decides which one it gets. */
export function outputName(output: string): string {
  return output.replace(/\.(png|jpe?g|webp|gif|avif|mp4|webm|mov|mp3|wav|ogg|m4a|flac)$/i, "");
}

function identicalRows({ rows }: { rows: readonly GoodRow[] }): Finding[] {
  const [first, ...others] = rows;
  if (!first || others.length === 0) return [];
  const copies = others.reduce((sum, { row }) => sum + row.repeat, 0);
  const cost = times(credits(first.model.credits_cost), copies);
  const numbers = rows.map(({ row }: { row: Row }) => row.number);
  return [
    {
      kind: "identical_rows",
      message: `rows ${numbers.join(", ")} ask for the very same thing; each is made and paid for`,
      rows: numbers,
      copies,
      credits: cost,
    },
  ];
}
