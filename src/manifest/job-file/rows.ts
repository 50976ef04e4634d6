import type { Problem } from "../../core/problem.js";
import { type Document, isObject, type Language, type Plain, parsed } from "../formats/document.js";
import {
  isTemplate,
  type RowsFrom,
  rowsInMemory,
  type Source,
  type SourceRow,
  unreadSource,
} from "../shape/source.js";
import { jobOf, writtenAt } from "./job.js";
import { checkJob, checkRow, rowPlace } from "./job-shape.js";

/** Reads an array of rows, or a job, from JSON or YAML. A job may name another file for its rows, or files that are its rows. */
export function readDocument(
  file: string,
  text: string,
  language: Language,
): { source: Source; rowsFrom?: RowsFrom } {
  const document = parsed(file, text, language);
  if ("problem" in document) return { source: unreadSource(document.problem) };
  const top = document.plain;
  if (Array.isArray(top)) return { source: sourceOf(rowsIn(document, top, [])) };
  const wrong = checkJob(document);
  if (!isObject(top) || wrong.length > 0) {
    // Rows are checked as well, so that all problems are reported at once, but none for what the job would give them.
    const rows = isObject(top) && Array.isArray(top["rows"]) ? top["rows"] : [];
    const read = rowsIn(document, rows, ["rows"]).filter(({ row }) => row === undefined || isComplete(row));
    return { source: { ...sourceOf(read), problems: wrong } };
  }
  const { job, problems } = jobOf(document, top);
  const { rows, files } = top;
  const rowsFrom = files === undefined ? rows : [files].flat();
  if (typeof rowsFrom === "string" || files !== undefined) {
    return { source: { ...sourceOf([]), problems, job }, rowsFrom: rowsFrom as RowsFrom };
  }
  const read = sourceOf(
    rows === undefined ? [impliedRow(file)] : rowsIn(document, rows as Plain[], ["rows"]),
  );
  return { source: { ...read, problems, job } };
}

/** Reads JSON Lines, a row a line. A broken line does not affect the others. */
export function readLines(file: string, text: string): Source {
  const rows: Read[] = [];
  for (const [index, line] of text.split(/\r\n|\n|\r/).entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const number = rows.length + 1;
    const document = parsed(file, line, "JSON", index + 1);
    if ("problem" in document) {
      const { place, got } = document.problem;
      const expected = "an object with the row's fields, on one line";
      rows.push({
        problems: [
          { place: { ...place, row: number }, message: "the line is not valid JSON", expected, got },
        ],
      });
    } else rows.push(rowIn(document, document.plain, [], number));
  }
  return sourceOf(rows);
}

/** A text with a prompt on each line. */
export function readPrompts(file: string, text: string): Source {
  const prompts = text.split(/\r\n|\n|\r/).map((line) => line.trim());
  const rows = prompts.filter((prompt) => prompt !== "" && !prompt.startsWith("#"));
  const source = sourceOf(
    rows.map((prompt, index) => ({ problems: [], row: { number: index + 1, file, cells: { prompt } } })),
  );
  return { ...source, notes: [...source.notes, "each line of the file is taken as a prompt"] };
}

/** Whether the row needs nothing of its job. */
function isComplete({ cells }: SourceRow): boolean {
  return Boolean(cells["model"] && cells["prompt"]) && !Object.values(cells).some(isTemplate);
}

/** A job without rows has one empty row, in all its combinations. */
function impliedRow(file: string): Read {
  return { problems: [], row: { number: 1, file, cells: {} } };
}

type Read = { problems: Problem[]; row?: SourceRow };

function sourceOf(read: readonly Read[]): Source {
  const rows = read.flatMap(({ row }) => row ?? []);
  const columns = new Set(rows.flatMap(({ cells }) => Object.keys(cells)));
  const problems = read.flatMap((each) => each.problems);
  return { columns: [...columns], problems: [], notes: [], batches: rowsInMemory({ rows, problems }) };
}

function rowsIn(document: Document, rows: readonly Plain[], path: readonly PropertyKey[]): Read[] {
  return rows.map((plain, index) => rowIn(document, plain, [...path, index], index + 1));
}

function rowIn(document: Document, plain: Plain, path: readonly PropertyKey[], number: number): Read {
  const problems = checkRow(document, path, plain, number);
  if (problems.length > 0 || !isObject(plain)) return { problems };
  const place = rowPlace(document, plain, number);
  const { cells, marks } = writtenAt(document, plain, path, place, problems);
  if (problems.length > 0) return { problems };
  return { problems, row: { number, file: document.file, cells, mark: document.markAt(path), marks } };
}
