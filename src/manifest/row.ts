import { mediaFields } from "../api/inputs.js";
import type { Problem } from "../core/problem.js";
import { paramColumn, paramKey } from "./columns.js";
import type { Made } from "./expand.js";
import { cellPlace, type Defaults, type Row } from "./manifest.js";
import type { Cells } from "./source.js";
import { wholeNumberBefore } from "./spreadsheet.js";

/** More copies of one row than anybody means; a bound against a slip of the keyboard. */
const repeatMax = 1_000;

/** A row from its cells, and what is wrong with them. Never throws. */
export function toRow(made: Made, repair: boolean): { row: Row; problems: Problem[] } {
  const { cells, byDefault } = made;
  const problems: Problem[] = [];
  const row: Row = {
    number: made.number,
    place: made.place,
    id: trimmed(cells["id"]),
    label: made.label,
    model: trimmed(cells["model"]) ?? "",
    prompt: cells["prompt"] ?? null,
    params: paramsOf(cells),
    defaultParams: Object.keys(paramsOf(cells)).filter((key) => byDefault.has(paramColumn(key))),
    inputs: inputsOf(cells),
    output: trimmed(cells["output"]),
    repeat: 1,
    priority: 0,
    repairs: [],
    columns: made.columns,
    marks: made.marks,
  };
  const number = (column: string, bounds: Bounds) =>
    wholeNumber(row, cells, column, bounds, repair, problems);
  row.repeat = number("repeat", { min: 1, max: repeatMax, missing: 1 });
  row.priority = number("priority", { min: -1_000, max: 1_000, missing: 0 });
  return { row, problems };
}

/** Defaults from the command line as cells, so that every default goes one way. */
export function defaultCells(defaults: Defaults): Cells {
  const params = Object.entries(defaults.params ?? {}).map(([key, value]) => [paramColumn(key), value]);
  return Object.fromEntries([
    ...(defaults.model ? [["model", defaults.model]] : []),
    ...(defaults.prompt ? [["prompt", defaults.prompt]] : []),
    ...params,
  ]);
}

/** Spreadsheets leave spaces behind, which no id, key or address means. Prompts are kept as written. */
function trimmed(cell: string | undefined): string | null {
  return cell?.trim() || null;
}

/** A parameter that a template left empty is none, like an empty cell. */
function paramsOf(cells: Cells): Record<string, string> {
  return Object.fromEntries(
    Object.entries(cells).flatMap(([column, cell]) => {
      const key = paramKey(column);
      return key === null || cell.trim() === "" ? [] : [[key, cell.trim()]];
    }),
  );
}

function inputsOf(cells: Cells): Row["inputs"] {
  return Object.fromEntries(
    mediaFields.flatMap((field) => {
      const value = trimmed(cells[field]);
      return value === null ? [] : [[field, value]];
    }),
  );
}

interface Bounds {
  min: number;
  max: number;
  /** The value of an empty cell. */
  missing: number;
}

function wholeNumber(
  row: Row,
  cells: Cells,
  column: string,
  bounds: Bounds,
  repair: boolean,
  problems: Problem[],
): number {
  const text = trimmed(cells[column]);
  if (text === null) return bounds.missing;
  const before = wholeNumberBefore(text);
  const taken = repair && before !== null ? before : text;
  const value = /^[+-]?\d{1,6}$/.test(taken) ? Number(taken) : Number.NaN;
  if (value >= bounds.min && value <= bounds.max) {
    if (taken !== text) row.repairs.push({ column, from: text, to: taken });
    return value;
  }
  problems.push({
    place: cellPlace(row, column),
    message: `${column} is not a number that can be used`,
    expected: `a whole number from ${bounds.min} to ${bounds.max}`,
    got: text,
    ...(before === null ? {} : { repair: before }),
  });
  return bounds.missing;
}
