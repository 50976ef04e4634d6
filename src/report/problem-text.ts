import { isAbsolute, relative } from "node:path";
import {
  asideWords,
  type Digest,
  type Place,
  type Problem,
  type ProblemGroup,
  rowsText,
} from "../core/problem.js";
import { shortText, terminalText } from "../text/terminal.js";

const valueCharactersMax = 300;

/** A problem on one line: where, what, what was expected, what was found, and the nearest valid value. */
export function problemLine(problem: Problem): string {
  return groupLine(problem, placeText(problem.place), "");
}

/** A mistake on one line; it may be in several rows. */
function groupLine({ message, expected, got, nearest }: Problem, where: string, ofRow: string): string {
  const meant = nearest === undefined ? "" : `; did you mean ${JSON.stringify(nearest)}?`;
  const found = `, got ${shortText(got, valueCharactersMax)}${ofRow}`;
  const isSaid = message.includes(`"${got}"`);
  const values = `expected ${shortText(expected, valueCharactersMax)}${isSaid ? "" : found}`;
  return terminalText(`${where}: ${shortText(message, valueCharactersMax)}; ${values}${meant}`);
}

/**
 * All problems, one line each; a manifest that is wrong in every row does not fill the screen. Files are named as seen
 * from `folder`, if that is shorter.
 */
export function problemsText({ reported, count, repairs }: Digest, folder: string): string {
  const seen = reported.map(({ problem: { place, ...problem }, ...group }) => ({
    problem: { ...problem, place: { ...place, file: shownPath(place.file, folder) } },
    ...group,
  }));
  const lines = seen.map(lineOf);
  const repair = repairLine(repairs);
  if (repair !== null) lines.push(repair);
  const more = count - seen.reduce((sum, { times }) => sum + times, 0);
  if (more <= 0) return lines.join("\n");
  const file = terminalText(seen[0]?.problem.place.file ?? "");
  const named = /\s/.test(file) ? JSON.stringify(file) : file;
  const ways = `\`bulkgen plan ${named} --json\` has every one; \`bulkgen run --skip-invalid\` leaves out invalid rows and writes problems.csv`;
  return [...lines, `and ${more} more: ${ways}`].join("\n");
}

function lineOf({ problem, times, rows, valuesDiffer, totals }: ProblemGroup): string {
  if (problem.aside !== undefined) {
    const left = rows.count + totals.count === 1 ? "leaves it out" : "leaves out just these";
    return terminalText(`${problem.place.file}: ${asideWords(rows, totals)}; --skip-headings ${left}`);
  }
  if (rows.count < 2) return problemLine(problem) + again(times - 1);
  const { id: _id, combination: _combination, ...place } = problem.place;
  const ofRow = valuesDiffer ? ` in row ${place.row}` : "";
  return groupLine(problem, placeText(place, rowsText(rows)), ofRow);
}

function again(times: number): string {
  return times === 0 ? "" : ` (and ${times} more ${times === 1 ? "time" : "times"})`;
}

function repairLine(some: number): string | null {
  if (some === 0) return null;
  const them = some === 1 ? "it" : "them";
  return `a spreadsheet seems to have changed ${some} of these values; --repair changes ${them} back and lists each one`;
}

/** A path as seen from a folder, if that is shorter. */
export function shownPath(path: string, folder: string): string {
  const seen = isAbsolute(path) ? relative(folder, path) : path;
  return seen !== "" && seen.length < path.length ? seen : path;
}

function placeText(
  { file, row, line, lineColumn, column, id, combination }: Place,
  rows = row === null ? "" : `row ${row}`,
): string {
  const at = line === undefined ? file : `${file}:${line}:${lineColumn ?? 1}`;
  const pieces = [
    rows,
    id === undefined ? "" : `id ${id}`,
    combination === undefined ? "" : `(${combination})`,
    column === undefined ? "" : `column ${column}`,
  ].filter(Boolean);
  return [at, ...pieces].join(", ");
}
