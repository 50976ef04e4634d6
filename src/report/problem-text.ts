import { isAbsolute, relative } from "node:path";
import type { Place, Problem } from "../core/problem.js";
import { shortText, terminalText } from "../core/terminal-text.js";

const valueCharactersMax = 300;
const problemsMax = 50;

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
export function problemsText(problems: readonly Problem[], folder: string): string {
  const seen = problems.map(({ place, ...problem }) => ({
    ...problem,
    place: { ...place, file: shownPath(place.file, folder) },
  }));
  const lines = seen.slice(0, problemsMax).map(problemLine);
  const more = problems.length - lines.length;
  if (more <= 0) return lines.join("\n");
  const file = terminalText(seen[0]?.place.file ?? "");
  const named = /\s/.test(file) ? JSON.stringify(file) : file;
  const ways = `\`bulkgen plan ${named} --json\` has every one; \`bulkgen run\` with --skip-invalid leaves wrong rows out and writes problems.csv`;
  return [...lines, `and ${more} more: ${ways}`].join("\n");
}

/** A path as seen from a folder, where that is shorter. */
export function shownPath(path: string, folder: string): string {
  const seen = isAbsolute(path) ? relative(folder, path) : path;
  return seen !== "" && seen.length < path.length ? seen : path;
}

function placeText({ file, row, line, lineColumn, column, id }: Place): string {
  const at = line === undefined ? file : `${file}:${line}:${lineColumn ?? 1}`;
  const pieces = [
    row === null ? "" : `row ${row}`,
    id === undefined ? "" : `id ${id}`,
    column === undefined ? "" : `column ${column}`,
  ].filter(Boolean);
  return [at, ...pieces].join(", ");
}
