import { isAbsolute, relative } from "node:path";
import type { Digest, Place, Problem } from "../core/problem.js";
import { shortText, terminalText } from "../text/terminal.js";

const valueCharactersMax = 300;

/** A problem on one line: where, what, what was expected, what was found, and the nearest valid value. */
export function problemLine({ place, message, expected, got, nearest }: Problem): string {
  const meant = nearest === undefined ? "" : `; did you mean ${JSON.stringify(nearest)}?`;
  const values = `expected ${shortText(expected, valueCharactersMax)}, got ${shortText(got, valueCharactersMax)}`;
  return terminalText(`${placeText(place)}: ${message}; ${values}${meant}`);
}

/**
 * All problems, one line each; a manifest that is wrong in every row does not fill the screen. Files are named as seen
 * from `folder`, where that is shorter.
 */
export function problemsText({ told, count, repairs }: Digest, folder: string): string {
  const seen = told.map(({ problem: { place, ...problem }, times }) => ({
    problem: { ...problem, place: { ...place, file: shownPath(place.file, folder) } },
    times,
  }));
  const lines = seen.map(({ problem, times }) => problemLine(problem) + again(times - 1));
  const repair = repairLine(repairs);
  if (repair !== null) lines.push(repair);
  const more = count - seen.reduce((sum, { times }) => sum + times, 0);
  if (more <= 0) return lines.join("\n");
  const file = terminalText(seen[0]?.problem.place.file ?? "");
  const named = /\s/.test(file) ? JSON.stringify(file) : file;
  const ways = `\`bulkgen plan ${named} --json\` has every one; \`bulkgen run --skip-invalid\` leaves out invalid rows and writes problems.csv`;
  return [...lines, `and ${more} more: ${ways}`].join("\n");
}

function again(times: number): string {
  return times === 0 ? "" : ` (and ${times} more ${times === 1 ? "time" : "times"})`;
}

function repairLine(some: number): string | null {
  if (some === 0) return null;
  const them = some === 1 ? "it" : "them";
  return `a spreadsheet seems to have changed ${some} of these values; --repair changes ${them} back and lists each one`;
}

/** A path as seen from a folder, where that is shorter. */
export function shownPath(path: string, folder: string): string {
  const seen = isAbsolute(path) ? relative(folder, path) : path;
  return seen !== "" && seen.length < path.length ? seen : path;
}

function placeText({ file, row, line, lineColumn, column, id, combination }: Place): string {
  const at = line === undefined ? file : `${file}:${line}:${lineColumn ?? 1}`;
  const pieces = [
    row === null ? "" : `row ${row}`,
    id === undefined ? "" : `id ${id}`,
    combination === undefined ? "" : `(${combination})`,
    column === undefined ? "" : `column ${column}`,
  ].filter(Boolean);
  return [at, ...pieces].join(", ");
}
