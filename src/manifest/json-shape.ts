import { z } from "zod";
import { mediaFields } from "../api/inputs.js";
import { nearest } from "../core/nearest.js";
import type { Place, Problem } from "../core/problem.js";
import { columnName } from "./columns.js";
import type { JsonDocument, Plain } from "./json-document.js";

/** The shapes of JSON manifests. The messages say what was expected; what was found is told from the value. */
const cell = z.string("text, a number, or true or false").nullable();
const params = z.record(z.string(), cell, "an object of parameters").nullable();
const row = z.object({ params: params.optional() }, "an object with the row's fields").catchall(cell);

const defaultFields = ["model", "prompt", "params", ...mediaFields, "repeat", "priority"] as const;
const jobFields = ["name", "defaults", "rows", "$schema"] as const;

const job = z.strictObject(
  {
    $schema: z.string("an address").optional(),
    name: z.string("a name").optional(),
    defaults: z
      .strictObject(
        {
          ...Object.fromEntries(defaultFields.map((field) => [field, cell.optional()])),
          params: params.optional(),
        },
        "an object with the rows' defaults",
      )
      .nullable()
      .optional(),
    rows: z.union([z.array(z.unknown()), z.string()], "an array of rows, or the name of a CSV file"),
  },
  "an array of rows, or an object with rows",
);

/** What is wrong with the top of a job, without its rows. */
export function checkJob(document: JsonDocument): Problem[] {
  return problemsOf(document, job.safeParse(document.plain).error, [], { file: document.file, row: null });
}

/** What is wrong with the shape of one row. */
export function checkRow(
  document: JsonDocument,
  path: readonly PropertyKey[],
  plain: Plain,
  number: number,
): Problem[] {
  const id = at(plain, ["id"]);
  const place = { file: document.file, row: number, ...(typeof id === "string" && id.trim() ? { id } : {}) };
  return problemsOf(document, row.safeParse(plain).error, path, place);
}

function problemsOf(
  document: JsonDocument,
  error: z.ZodError | undefined,
  base: readonly PropertyKey[],
  place: Place,
): Problem[] {
  return (error?.issues ?? []).flatMap((wrong) => {
    if (wrong.code === "unrecognized_keys") {
      return wrong.keys.map((key) => unknownField(document, [...base, ...wrong.path, key], place));
    }
    const path = [...base, ...wrong.path];
    const column = columnOf(wrong.path);
    return {
      place: { ...place, ...(column ? { column } : {}), ...document.markAt(path) },
      message: column ? `${column} has the wrong form` : "the value has the wrong form",
      expected: wrong.message,
      got: described(at(document.plain, path)),
    };
  });
}

function unknownField(document: JsonDocument, path: readonly PropertyKey[], place: Place): Problem {
  const key = String(path.at(-1));
  const known = path.length > 1 ? defaultFields : jobFields;
  const near = nearest(key, known);
  return {
    place: { ...place, column: columnOf(path), ...document.markAt(path) },
    message: `unknown field "${key}"${path.length > 1 ? ` in ${String(path[0])}` : ""}`,
    expected: `one of: ${known.join(", ")}`,
    got: key,
    ...(near ? { nearest: near } : {}),
  };
}

function columnOf(path: readonly PropertyKey[]): string {
  return columnName(path.map(String).join("."));
}

function at(plain: Plain | undefined, path: readonly PropertyKey[]): Plain | undefined {
  return path.reduce<Plain | undefined>(
    (value, key) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, key)
        ? (value as Record<PropertyKey, Plain>)[key]
        : undefined,
    plain,
  );
}

function described(value: Plain | undefined): string {
  if (value === undefined || value === null) return "nothing";
  if (Array.isArray(value)) return value.length === 1 ? "a list of 1" : `a list of ${value.length}`;
  return typeof value === "object" ? "an object" : `"${value}"`;
}
