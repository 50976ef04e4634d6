import { basename, dirname, extname, join } from "node:path";
import type { Problem } from "../core/problem.js";
import { filledColumns } from "../core/sheet.js";
import { isKnown, unusedNote } from "./columns.js";
import { readCsv } from "./csv.js";
import { readJson } from "./json.js";
import { cellPlace, type Defaults, type Manifest, type Row } from "./manifest.js";
import { defaultCells, toRow } from "./row.js";
import type { Cells, Source } from "./source.js";
import { readText } from "./text.js";

export interface ReadOptions {
  /** From the command line; the manifest's own defaults and its rows come before them. */
  defaults?: Defaults;
}

/**
 * Reads a manifest and checks all that can be checked without the service. Problems come back in the manifest, all of
 * them at once; it throws for none.
 */
export async function readManifest(path: string, options: ReadOptions = {}): Promise<Manifest> {
  const source = await readSource(path);
  const defaults: Cells = { ...defaultCells(options.defaults ?? {}), ...source.defaults };
  const problems = [...source.problems];
  const rows: Row[] = [];
  for (const each of source.rows) {
    const read = toRow(each, defaults);
    rows.push(read.row);
    problems.push(...read.problems);
  }
  problems.push(...duplicateIds(rows));
  if (rows.length === 0 && problems.length === 0) problems.push(noRows(path));
  const unusedColumns = source.columns.filter((column) => !isKnown(column));
  return {
    name: source.name ?? basename(path, extname(path)),
    file: path,
    rows,
    problems: byRow(problems),
    notes: unusedColumns.filter((column) => !isFilledIn(column, source.columns)).map(unusedNote),
    columns: source.columns,
    unusedColumns,
  };
}

/** Problems in the order of the sheet; what concerns the whole file comes first. */
export function byRow(problems: readonly Problem[]): Problem[] {
  return problems.toSorted((a, b) => (a.place.row ?? 0) - (b.place.row ?? 0));
}

/** Whether a column is one of those that an export adds: all of them together are nobody's slip. */
function isFilledIn(column: string, columns: readonly string[]): boolean {
  const filled: readonly string[] = filledColumns;
  return filled.includes(column) && filled.every((name) => columns.includes(name));
}

async function readSource(path: string): Promise<Source> {
  const read = await readText(path);
  if ("problem" in read) return { columns: [], rows: [], problems: [read.problem] };
  if (!isJson(path, read.text)) return readCsv(path, read.text);
  const { source, rowsFile } = readJson(path, read.text);
  if (rowsFile === undefined) return source;
  const file = join(dirname(path), rowsFile);
  const sheet = await readText(file);
  if ("problem" in sheet) return { ...source, problems: [...source.problems, sheet.problem] };
  const rows = isJson(file, sheet.text) ? readJson(file, sheet.text).source : readCsv(file, sheet.text);
  return {
    ...source,
    columns: rows.columns,
    rows: rows.rows,
    problems: [...source.problems, ...rows.problems],
  };
}

/** By the name where it tells, else by the first character: no sheet's header begins with a bracket. */
function isJson(file: string, text: string): boolean {
  const extension = extname(file).toLowerCase();
  if (extension === ".json") return true;
  return extension !== ".csv" && extension !== ".tsv" && /^\s*[[{]/.test(text);
}

/** The first row with an id keeps it; the problem lies with the later ones. */
function duplicateIds(rows: readonly Row[]): Problem[] {
  const first = new Map<string, number>();
  return rows.flatMap((row) => {
    if (row.id === null) return [];
    const earlier = first.get(row.id);
    if (earlier === undefined) {
      first.set(row.id, row.number);
      return [];
    }
    return {
      place: cellPlace(row, "id"),
      message: `rows ${earlier} and ${row.number} have the same id`,
      expected: "an id that no other row has, or none",
      got: row.id,
    };
  });
}

function noRows(file: string): Problem {
  return {
    place: { file, row: null },
    message: "the manifest has no rows",
    expected: "at least one row",
    got: "none",
  };
}
