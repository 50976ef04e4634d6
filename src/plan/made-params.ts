import { normalText, priceGroup } from "../core/identity.js";
import { foldedName } from "../manifest/shape/columns.js";
import type { Row } from "../manifest/shape/manifest.js";
import { optionBefore } from "../manifest/shape/repairs.js";
import type { CheckedRow } from "./check-row.js";

/**
 * With which params an unchanged row may have been made under another catalogue. The catalogue decides which defaults are
 * sent, how a parameter is spelled, and which option a value that a spreadsheet changed stands for. So every set of params
 * with which the job has items of the model is tried: it is the row's if it says the same in all of that.
 */
export class MadeParams {
  private readonly models = new Map<string, ModelMade>();

  constructor(
    groups: Iterable<string>,
    /** The defaults that were left out of requests for a model, because it did not take them then; null if nobody knows. */
    private readonly leftOut: ReadonlyMap<string, ReadonlySet<string>> | null,
  ) {
    for (const group of groups) this.take(...(JSON.parse(group) as [string, [string, string][]]));
  }

  private take(model: string, params: readonly [string, string][]): void {
    const made = this.models.get(model) ?? { shapes: new Map(), values: new Map(), before: new Map() };
    this.models.set(model, made);
    const keys = params.map(([key]) => key);
    made.shapes.set(JSON.stringify(keys), keys);
    for (const [key, value] of params) {
      const values = made.values.get(key) ?? new Set();
      made.values.set(key, values);
      if (values.size < valuesMax) values.add(value);
    }
  }

  /** Other params with which the row may have been made, the most first. */
  of(checked: CheckedRow): Row["params"][] {
    const made = this.models.get(checked.row.model);
    if (made === undefined) return [];
    const shapes = [...made.shapes.values()];
    // Most jobs have one set of keys for a model, and their rows have it.
    if (shapes.length === 1 && isAsMade(checked, shapes[0] ?? [], made)) return [];
    const present = groupOf(checked, checked.params);
    const found = new Map<string, Row["params"]>();
    for (const keys of shapes.toSorted((a, b) => b.length - a.length))
      for (const params of this.asShaped(checked, keys, made)) {
        const group = groupOf(checked, params);
        if (group !== present || checked.model === null) found.set(group, params);
      }
    return [...found.values()];
  }

  /** The row's params in a set of keys; none if the row says something else. */
  private asShaped(checked: CheckedRow, keys: readonly string[], made: ModelMade): Row["params"][] {
    const { row, params } = checked;
    const used = new Set<string>();
    let all: [string, string][][] = [[]];
    for (const key of keys) {
      const written = writtenAs(row.params, key, used);
      if (written === undefined) return [];
      used.add(written);
      const value = row.params[written] ?? "";
      const sent = Object.entries(params).find(([other]) => alike(other, key))?.[1];
      const before = valueBefore(value, key, made);
      const values = new Set([value, sent, before].flatMap((each) => each ?? []));
      all = all.flatMap((some) => [...values].map((each): [string, string][] => [...some, [key, each]]));
      if (all.length > combinationsMax) return [];
    }
    const others = Object.keys(row.params).filter(
      (key) => !used.has(key) && normalText(row.params[key] ?? "") !== "",
    );
    return others.every((key) => this.mayBeLeftOut(checked, key))
      ? all.map((each) => Object.fromEntries(each))
      : [];
  }

  /** Whether a request that lacks this param may be the row's: a default that the model does not or did not take. */
  private mayBeLeftOut({ row, model, without }: CheckedRow, key: string): boolean {
    if (!row.defaultParams.includes(key)) return false;
    if (model === null || without.some((each) => each.key === key)) return true;
    return this.leftOut === null || (this.leftOut.get(row.model)?.has(key) ?? false);
  }
}

interface ModelMade {
  /** The sets of keys, by their text. */
  shapes: Map<string, string[]>;
  values: Map<string, Set<string>>;
  /** What was found for a value. */
  before: Map<string, string | null>;
}

/** Whether the row's params are already those that its model's items have, in keys and values. */
function isAsMade({ model, row, params }: CheckedRow, keys: readonly string[], made: ModelMade): boolean {
  let count = 0;
  for (const key in params) {
    const value = params[key] as string;
    if (row.params[key] !== value || valueBefore(value, key, made) !== null) return false;
    count++;
  }
  return model !== null && count === keys.length && keys.every((key) => params[key] !== undefined);
}

/** The value that a spreadsheet would have turned into this one, among those that items have. */
function valueBefore(value: string, key: string, { values, before }: ModelMade): string | null {
  const seen = values.get(key);
  if (seen === undefined || seen.size >= valuesMax || seen.has(normalText(value))) return null;
  const name = JSON.stringify([key, value]);
  let found = before.get(name);
  if (found === undefined) {
    found = optionBefore(value, [...seen]);
    if (before.size < keptMax) before.set(name, found);
  }
  return found;
}

/** More values of a parameter are probably free text, which no spreadsheet changes into one of the others. */
const valuesMax = 200;
const combinationsMax = 64;
const keptMax = 1_000;

function alike(name: string, key: string): boolean {
  return foldedName(name) === foldedName(key);
}

/** How the row spells a parameter. */
function writtenAs(params: Row["params"], key: string, used: ReadonlySet<string>): string | undefined {
  if (params[key] !== undefined && !used.has(key)) return key;
  const names = Object.keys(params).filter((name) => !used.has(name) && alike(name, key));
  return names.length === 1 ? names[0] : undefined;
}

function groupOf({ row }: CheckedRow, params: Row["params"]): string {
  return priceGroup({ model: row.model, params });
}
