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

/** All problems, one line each; a manifest that is wrong in every row does not fill the screen. */
export function problemsText(problems: readonly Problem[]): string {
  const lines = problems.slice(0, problemsMax).map(problemLine);
  const more = problems.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
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
