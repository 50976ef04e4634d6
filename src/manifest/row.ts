import { mediaFields } from "../api/inputs.js";
import type { Place, Problem } from "../core/problem.js";
import { paramColumn, paramKey } from "./columns.js";
import { cellPlace, type Defaults, type Row } from "./manifest.js";
import type { Cells, SourceRow } from "./source.js";

/** More copies of one row than anybody means; a bound against a slip of the keyboard. */
const repeatMax = 1_000;

/** A row with its defaults filled in, and what is wrong with its cells. Never throws. */
export function toRow(source: SourceRow, defaults: Cells): { row: Row; problems: Problem[] } {
  const own = source.cells;
  const cells: Cells = { ...defaults, ...own };
  const id = trimmed(own["id"]);
  const place: Place = {
    file: source.file,
    row: source.number,
    ...source.mark,
    ...(id === null ? {} : { id }),
  };
  const problems: Problem[] = [];
  const row: Row = {
    number: source.number,
    place,
    id,
    model: trimmed(cells["model"]) ?? "",
    prompt: cells["prompt"] ?? null,
    params: paramsOf(cells),
    defaultParams: Object.keys(paramsOf(defaults)).filter((key) => own[paramColumn(key)] === undefined),
    inputs: inputsOf(cells),
    output: trimmed(own["output"]),
    repeat: 1,
    priority: 0,
    columns: own,
    marks: source.marks ?? {},
  };
  row.repeat = wholeNumber(row, cells, "repeat", { min: 1, max: repeatMax, missing: 1 }, problems);
  row.priority = wholeNumber(row, cells, "priority", { min: -1_000, max: 1_000, missing: 0 }, problems);
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

function paramsOf(cells: Cells): Record<string, string> {
  return Object.fromEntries(
    Object.entries(cells).flatMap(([column, cell]) => {
      const key = paramKey(column);
      return key === null ? [] : [[key, cell.trim()]];
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

function wholeNumber(row: Row, cells: Cells, column: string, bounds: Bounds, problems: Problem[]): number {
  const text = trimmed(cells[column]);
  if (text === null) return bounds.missing;
  const value = /^[+-]?\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= bounds.min && value <= bounds.max) return value;
  problems.push({
    place: cellPlace(row, column),
    message: `${column} is not a number that can be used`,
    expected: `a whole number from ${bounds.min} to ${bounds.max}`,
    got: text,
  });
  return bounds.missing;
}
