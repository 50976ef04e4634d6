import { hasKey, keyPrefix, redaction, withoutKeys } from "../api/key.js";
import type { Place, Problem } from "../core/problem.js";
import { axesOf } from "./combinations.js";
import { paramColumn } from "./shape/columns.js";
import { cellPlace, type Defaults, type Part, type Row } from "./shape/manifest.js";
import type { Source, Written } from "./shape/source.js";

/**
 * People paste their API key where it does not belong. A text of a manifest is sent to the service and kept in the workspace, so
 * a row with a key goes no further than here, and no problem quotes it.
 */

/** The part without rows that have a key, which become problems. */
export function withoutKeyRows({ rows, problems }: Part): Part {
  const refused: { row: Row; column: string }[] = [];
  for (const row of rows) {
    const column = columnWithKey(row);
    if (column !== null) refused.push({ row, column });
  }
  if (refused.length === 0) return { rows, problems: problems.map(unquoted) };
  const wrong = new Set(refused.map(({ row }) => row));
  return {
    rows: rows.filter((row) => !wrong.has(row)),
    problems: [...problems, ...refused.map(({ row, column }) => found(cellPlace(row, column)))].map(unquoted),
  };
}

/** The problem of a key in what all rows have in common: the header, the job file, and flags and settings. */
export function keyInCommon(
  file: string,
  { columns, job }: Pick<Source, "columns" | "job">,
  defaults: Defaults,
): Problem | null {
  if (columns.some(hasKey)) return found({ file, row: null });
  if (hasKey(JSON.stringify(defaults)))
    return { ...found({ file: "flags or settings", row: null }), message: `a default ${sentAndKept}` };
  if (job === undefined) return null;
  const steps = job.steps.flatMap((step) => [step, ...step.axes.flatMap(({ settings }) => settings)]);
  const parts: Written[] = [
    job.defaults,
    job.vars,
    ...axesOf(job).flatMap(({ settings }) => settings),
    ...steps,
  ];
  for (const { cells, marks } of parts)
    for (const column in cells)
      if (hasKey(cells[column] as string)) return found({ file, row: null, column, ...marks[column] });
  return hasKey(JSON.stringify(job)) ? found({ file, row: null }) : null;
}

const sentAndKept = "has an API key in it, which would be sent to the service and kept in the workspace";

function found(place: Place): Problem {
  return unquoted({
    place,
    message: `the text ${sentAndKept}`,
    expected: "no API key: it belongs in BULKGEN_API_KEY or .env",
    got: redaction,
  });
}

/** Every row of a large sheet comes this way, so nothing is made for one that has no key. */
function columnWithKey(row: Row): string | null {
  const { columns, params, inputs, place } = row;
  for (const column in columns) if (isKeyIn(columns[column])) return column;
  for (const field of ["id", "model", "prompt", "output"] as const) if (isKeyIn(row[field])) return field;
  for (const field in inputs) if (isKeyIn(inputs[field as keyof typeof inputs])) return field;
  for (const key in params) if (isKeyIn(params[key])) return paramColumn(key);
  return isKeyIn(place.combination) ? "id" : null;
}

function isKeyIn(text: string | null | undefined): boolean {
  return typeof text === "string" && text.includes(keyPrefix) && hasKey(text);
}

/** A problem as it may be shown. */
function unquoted(problem: Problem): Problem {
  const { place, message, expected, got, nearest, repair } = problem;
  const texts = [message, got, expected, nearest, repair, place.column, place.id, place.combination];
  if (!texts.some((text) => text?.includes(keyPrefix))) return problem;
  const text = JSON.stringify(problem);
  const clean = withoutKeys(text);
  return clean === text ? problem : (JSON.parse(clean) as Problem);
}
