import type { Problem } from "../core/problem.js";
import { columnName, paramColumn } from "./columns.js";
import { isObject, type JsonDocument, type Plain, parseJson } from "./json-document.js";
import { checkJob, checkRow } from "./json-shape.js";
import type { Mark } from "./manifest.js";
import type { Cells, Source, SourceRow } from "./source.js";

/**
 * Reads an array of rows, or a job `{name, defaults, rows}`. JSON is read by the YAML parser, of which it is a subset,
 * because that one knows where each value stands. It thereby also takes comments and a comma too many.
 */
export function readJson(file: string, text: string): { source: Source; rowsFile?: string } {
  const parsed = parseJson(file, text);
  if ("problem" in parsed) return { source: { columns: [], rows: [], problems: [parsed.problem] } };
  const top = parsed.plain;
  if (Array.isArray(top)) return { source: rowsOf(parsed, top, []) };
  const problems = checkJob(parsed);
  const job = (typeof top === "object" ? top : null) ?? {};
  const rows = Array.isArray(job["rows"]) ? job["rows"] : [];
  const read = rowsOf(parsed, rows, ["rows"]);
  const defaults = job["defaults"];
  const source: Source = {
    ...read,
    problems: [...problems, ...read.problems],
    ...(typeof job["name"] === "string" && job["name"].trim() ? { name: job["name"].trim() } : {}),
    ...(isObject(defaults) ? { defaults: cellsOf(defaults) } : {}),
  };
  return typeof job["rows"] === "string" ? { source, rowsFile: job["rows"] } : { source };
}

function rowsOf(parsed: JsonDocument, rows: readonly Plain[], path: readonly PropertyKey[]): Source {
  const read: SourceRow[] = [];
  const problems: Problem[] = [];
  const columns = new Set<string>();
  for (const [index, plain] of rows.entries()) {
    const rowPath = [...path, index];
    const wrong = checkRow(parsed, rowPath, plain, index + 1);
    problems.push(...wrong);
    if (wrong.length > 0 || !isObject(plain)) continue;
    const cells = cellsOf(plain);
    for (const column of Object.keys(cells)) columns.add(column);
    const marks = marksOf(parsed, plain, rowPath);
    read.push({ number: index + 1, file: parsed.file, cells, mark: parsed.markAt(rowPath), marks });
  }
  return { columns: [...columns], rows: read, problems };
}

/** Cells of a row or of the defaults, whose shape was checked. Nested params become `params.KEY`. */
function cellsOf(row: { [key: string]: Plain }): Cells {
  return Object.fromEntries(
    Object.entries(row).flatMap(([key, value]): [string, string][] => {
      if (key === "params" && isObject(value)) {
        return textsOf(value).map(([name, text]) => [paramColumn(name.trim()), text]);
      }
      return typeof value === "string" && value.trim() !== "" ? [[columnName(key), value]] : [];
    }),
  );
}

function marksOf(parsed: JsonDocument, row: { [key: string]: Plain }, path: readonly PropertyKey[]) {
  return Object.fromEntries(
    Object.entries(row).flatMap(([key, value]): [string, Mark][] =>
      key === "params" && isObject(value)
        ? textsOf(value).map(([name]) => [paramColumn(name.trim()), parsed.markAt([...path, key, name])])
        : [[columnName(key), parsed.markAt([...path, key])]],
    ),
  );
}

function textsOf(values: { [key: string]: Plain }): [string, string][] {
  return Object.entries(values).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string" && entry[1].trim() !== "",
  );
}
