import type { Model } from "../api/records.js";
import { itemKey, shortId } from "../core/identity.js";
import { type Credits, credits, noCredits, showCredits, times } from "../core/money.js";
import { priceGroup } from "../core/price.js";
import type { Problem } from "../core/problem.js";
import type { NewItem } from "../core/store.js";
import { copyName, labelled, outputName } from "../manifest/item-names.js";
import { cellPlace, type Row } from "../manifest/manifest.js";
import type { CheckedRow } from "./check-row.js";
import type { Finding } from "./plan.js";

export interface Scope {
  /** The highest charge seen for a price group. */
  charges: ReadonlyMap<string, Credits>;
  origin: string;
  account: string;
  edition: string;
  duplicates?: Duplicates;
  /** Row ids of the job's items, by key. */
  rowIds?: ReadonlyMap<string, string>;
}

/** A good row: one that has a model and no problem. */
export interface GoodRow extends CheckedRow {
  model: Model;
}

/** What to do about rows that ask for the very same thing: make each, make it once, or refuse. */
export type Duplicates = "keep" | "merge" | "error";

export interface Expansion {
  items: NewItem[];
  /** The items that each row stands for; rows that were merged share theirs. */
  keys: ReadonlyMap<Row, string[]>;
  identical: Finding[];
  problems: Problem[];
}

/** One item to be, before its number among identical ones is known. */
interface Slot {
  good: GoodRow;
  /** 1 for the first item of the row. */
  copy: number;
  position: number;
}

/** Rows that ask for the very same thing. */
interface Group {
  rows: GoodRow[];
  slots: Slot[];
}

/**
 * Makes the items of good rows. Rows that ask for the very same thing are told apart by their occurrence, counted
 * over the whole manifest, so that which of them has which number does not matter to what is paid. An occurrence that
 * a row's id had before stays with it, so that its file stays its own when rows change places.
 */
export function expand(rows: readonly GoodRow[], scope: Scope): Expansion {
  const duplicates = scope.duplicates ?? "keep";
  const groups = new Map<string, Group>();
  const slotsOf = new Map<Row, Slot[]>();
  let position = 0;
  for (const good of rows) {
    const first = keyOf(good, scope, 1);
    const group = groups.get(first) ?? { rows: [], slots: [] };
    groups.set(first, group);
    group.rows.push(good);
    const again = group.rows.length > 1;
    const missing = Math.max(0, good.row.repeat - (duplicates === "keep" ? 0 : group.slots.length));
    const added = Array.from({ length: again && duplicates === "error" ? 0 : missing }, (_, index): Slot => {
      return { good, copy: good.row.repeat - missing + index + 1, position: position++ };
    });
    group.slots.push(...added);
    slotsOf.set(good.row, again && duplicates !== "keep" ? group.slots.slice(0, good.row.repeat) : added);
  }
  const made = new Map<Slot, NewItem>();
  for (const [first, group] of groups) nameGroup(first, group, scope, made);
  const several = [...groups.values()].filter((group) => group.rows.length > 1);
  return {
    items: [...made.values()].toSorted((a, b) => a.position - b.position),
    keys: new Map(
      [...slotsOf].map(([row, slots]) => [row, slots.flatMap((slot) => made.get(slot)?.key ?? [])]),
    ),
    identical: duplicates === "error" ? [] : several.map(({ rows }) => identicalRows(rows, duplicates)),
    problems: duplicates === "error" ? several.flatMap(({ rows }) => duplicateProblems(rows)) : [],
  };
}

/** Gives each slot of a group its occurrence: the one that its row's id had before, else the next that is free. */
function nameGroup(first: string, { slots }: Group, scope: Scope, made: Map<Slot, NewItem>): void {
  const keys = slots.map(({ good }, index) => (index === 0 ? first : keyOf(good, scope, index + 1)));
  const free = new Set(keys.keys());
  const chosen = new Map<Slot, number>();
  const idOf = ({ good, copy }: Slot) => (good.row.id === null ? null : copyName(good.row.id, copy));
  const before = new Map(keys.map((key, index) => [scope.rowIds?.get(key), index]));
  for (const slot of slots.length > 1 ? slots : []) {
    const index = before.get(idOf(slot) ?? undefined);
    if (idOf(slot) !== null && index !== undefined && free.delete(index)) chosen.set(slot, index);
  }
  const rest = free.values();
  for (const slot of slots) {
    const index = chosen.get(slot) ?? (rest.next().value as number);
    const key = keys[index] as string;
    made.set(slot, itemOf(slot.good, scope, { ...slot, key, occurrence: index + 1 }));
  }
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

/** The output that was wanted; else the id, which tells combinations apart only where it was given. */
function nameOf(row: Row, rowId: string, copy: number): string {
  if (row.output !== null) return copyName(outputName(row.output), copy);
  return row.id === null ? labelled(rowId, row.label) : rowId;
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
    name: nameOf(row, rowId, copy),
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

function identicalRows(rows: readonly GoodRow[], duplicates: Duplicates): Finding {
  const [first, ...others] = rows as [GoodRow, ...GoodRow[]];
  const copies = others.reduce((sum, { row }) => sum + row.repeat, 0);
  const cost = times(credits(first.model.credits_cost), copies);
  const numbers = [...new Set(rows.map(({ row }) => row.number))];
  const same =
    numbers.length === 1
      ? `${rows.length} combinations of row ${numbers[0]} ask for the very same thing`
      : `rows ${shortList(numbers)} ask for the very same thing`;
  return {
    kind: "identical_rows",
    message:
      duplicates === "merge"
        ? `${same}; it is made once`
        : `${same}; each is made and paid for (${showCredits(cost)} ${cost === 1_000_000 ? "credit" : "credits"} more than once; --duplicates merge makes it once)`,
    rows: numbers,
    copies,
    credits: duplicates === "merge" ? noCredits : cost,
  };
}

function duplicateProblems([first, ...others]: readonly GoodRow[]): Problem[] {
  return others.map(({ row }) => ({
    place: cellPlace(row, "prompt"),
    message: `the row asks for the very same thing as row ${first?.row.number}`,
    expected: "rows that differ in model, prompt, params or inputs (or --duplicates keep or merge)",
    got: row.prompt ?? "no prompt",
  }));
}

const numbersMax = 8;

function shortList(numbers: readonly number[]): string {
  const more = numbers.length - numbersMax;
  return `${numbers.slice(0, numbersMax).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
