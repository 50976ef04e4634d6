import { mediaFields } from "../api/inputs.js";
import type { Place, Problem } from "../core/problem.js";
import { trimmedText } from "../text/trimmed.js";
import type { Layers } from "./combinations.js";
import { paramColumn, paramKey } from "./shape/columns.js";
import { damageIn, promptDamageIn } from "./shape/damage.js";
import { cellPlace, type Defaults, type Row } from "./shape/manifest.js";
import { wholeNumberBefore } from "./shape/repairs.js";
import type { Cells, SourceRow } from "./shape/source.js";

/** The most copies of a row: a bound against typing errors. */
const repeatMax = 1_000;

/** The most sets of params that are kept: a sheet may have different params in each row. */
const keptSetsMax = 1_000;

/** What a row is made from: its source and its rendered cells. */
export interface Made {
  row: SourceRow;
  layers: Layers;
  cells: Cells;
  lateName: Row["lateName"];
  sets: ParamSets;
}

/** How rows are read. */
export interface RowOptions {
  /** Repair values that a spreadsheet changed. */
  repair: boolean;
  /** Pass text that a spreadsheet or a wrong encoding seems to have destroyed. */
  allowDamagedText: boolean;
  /** Leave out rows that look like headings or totals and cannot be made. */
  skipHeadings: boolean;
}

/** Makes a row from its cells and adds their problems. Never throws. */
export function rowOf(
  { row: source, layers, cells, lateName, sets }: Made,
  { repair, allowDamagedText }: RowOptions,
  problems: Problem[],
): Row {
  const { params, defaultParams } = paramsOf(cells, layers, source, sets);
  const id = trimmed(cells["id"]);
  const row: Row = {
    number: source.number,
    place: placeOf(source, id, layers.text),
    id,
    label: layers.label,
    chain: layers.step === null ? null : layers.base,
    step: layers.step,
    model: trimmed(cells["model"]) ?? "",
    prompt: cells["prompt"] ?? null,
    params,
    defaultParams,
    inputs: inputsOf(cells),
    output: trimmed(cells["output"]),
    copyOutputs: null,
    lateName,
    repeat: 1,
    approve: layers.approve,
    priority: 0,
    repairs: [],
    columns: layers.columns(source),
    marks: layers.marks(source),
  };
  for (const field of ["repeat", "priority"] as const) {
    const text = trimmed(cells[field]);
    if (text !== null) row[field] = wholeNumber(row, field, text, repair, problems);
  }
  if (!allowDamagedText) checkTexts(row, problems);
  return row;
}

/** Every text that is sent, or names a file. */
function checkTexts(row: Row, problems: Problem[]): void {
  const check = (column: string, text: string | null, find = damageIn) => {
    const damage = text === null ? null : find(text);
    if (damage) problems.push({ place: cellPlace(row, column), ...damage });
  };
  check("id", row.id);
  check("prompt", row.prompt, promptDamageIn);
  check("output", row.output);
  for (const key in row.params) check(paramColumn(key), row.params[key] as string);
}

function placeOf({ file, number, mark }: SourceRow, id: string | null, combination: string): Place {
  const place: Place = mark ? { file, row: number, ...mark } : { file, row: number };
  if (id !== null) place.id = id;
  if (combination !== "") place.combination = combination;
  return place;
}

/** Turns defaults of the command line into cells, the form of all defaults. */
export function defaultCells(defaults: Defaults): Cells {
  const params = Object.entries(defaults.params ?? {}).map(([key, value]) => [paramColumn(key), value]);
  return Object.fromEntries([
    ...(defaults.model ? [["model", defaults.model]] : []),
    ...(defaults.prompt ? [["prompt", defaults.prompt]] : []),
    ...params,
  ]);
}

/** Trims spaces that spreadsheets add. Prompts are kept as written. */
function trimmed(cell: string | undefined): string | null {
  return cell === undefined ? null : trimmedText(cell) || null;
}

const noNames: string[] = [];

/** A parameter that a template rendered empty is left out, like an empty cell. */
function paramsOf(
  cells: Cells,
  layers: Layers,
  row: SourceRow,
  sets: ParamSets,
): Pick<Row, "params" | "defaultParams"> {
  let set = sets.none;
  let defaultParams = noNames;
  for (const column in cells) {
    const key = paramKey(column);
    const value = key === null ? "" : trimmedText(cells[column] as string);
    if (key === null || value === "") continue;
    set = sets.with(set, key, value);
    if (layers.byDefault(column, row)) defaultParams = [...defaultParams, key];
  }
  return { params: set.params, defaultParams };
}

function inputsOf(cells: Cells): Row["inputs"] {
  const inputs: Row["inputs"] = {};
  for (const field of mediaFields) {
    const value = trimmed(cells[field]);
    if (value !== null) inputs[field] = value;
  }
  return inputs;
}

/** The valid range, and the value of an empty cell. */
const bounds = {
  repeat: { min: 1, max: repeatMax, missing: 1 },
  priority: { min: -1_000, max: 1_000, missing: 0 },
} as const;

function wholeNumber(
  row: Row,
  column: keyof typeof bounds,
  text: string,
  repair: boolean,
  problems: Problem[],
): number {
  const { min, max, missing } = bounds[column];
  const before = wholeNumberBefore(text);
  const taken = repair && before !== null ? before : text;
  const value = /^[+-]?\d{1,6}$/.test(taken) ? Number(taken) : Number.NaN;
  if (value >= min && value <= max) {
    if (taken !== text) row.repairs.push({ column, from: text, to: taken });
    return value;
  }
  problems.push({
    place: cellPlace(row, column),
    message: `${column} is not a valid number`,
    expected: `a whole number from ${min} to ${max}`,
    got: text,
    ...(before === null ? {} : { repair: before }),
  });
  return missing;
}

/**
 * The params of rows. Rows with equal params share one object, so that facts about them, such as the price, are computed
 * once and not for each of a million rows.
 */
export class ParamSets {
  private readonly root = new ParamSet(null, "", "");
  private kept = 0;

  /** No params; `with` adds to them. */
  get none(): ParamSet {
    return this.root;
  }

  with(before: ParamSet, key: string, value: string): ParamSet {
    const known = before.next.get(key)?.get(value);
    if (known !== undefined) return known;
    const set = new ParamSet(before, key, value);
    if (this.kept < keptSetsMax) {
      this.kept++;
      before.keep(set);
    }
    return set;
  }
}

/** A set of params: another set and one more param, in order. */
export class ParamSet {
  readonly next = new Map<string, Map<string, ParamSet>>();
  private made: Readonly<Record<string, string>> | null = null;

  constructor(
    private readonly before: ParamSet | null,
    private readonly key: string,
    private readonly value: string,
  ) {}

  keep(set: ParamSet): void {
    const values = this.next.get(set.key) ?? new Map<string, ParamSet>();
    this.next.set(set.key, values.set(set.value, set));
  }

  get params(): Readonly<Record<string, string>> {
    this.made ??= Object.freeze(Object.fromEntries(this.entries()));
    return this.made;
  }

  private entries(): [string, string][] {
    return this.before === null ? [] : [...this.before.entries(), [this.key, this.value]];
  }
}
