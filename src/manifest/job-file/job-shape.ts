import { z } from "zod";
import { mediaFields } from "../../api/inputs.js";
import type { Place, Problem } from "../../core/problem.js";
import { durationIn } from "../../text/amounts.js";
import { nearest } from "../../text/nearest.js";
import { type Document, isObject, type Plain } from "../formats/document.js";
import { columnName } from "../shape/columns.js";

/**
 * The schemas of JSON and YAML manifests. Their messages say what was expected; what was found is described from the value.
 * The JSON Schema for editors is made from them, so every field has a description.
 */
const cell = z
  .union([z.string(), z.number(), z.boolean(), z.null()], "text, a number, or true or false")
  .describe("text (a Liquid template if it contains {{ }}), a number, or true or false");
const text = (meaning: string) => cell.describe(meaning);
const params = z
  .union([z.record(z.string(), cell), z.null()], "an object of parameters")
  .describe("parameters of the model, by key");

const fields = {
  model: text("a model key of the service"),
  prompt: text("the prompt; @FILE.txt reads it from a file in the manifest's folder"),
  params,
  ...Object.fromEntries(
    mediaFields.map((field) => [
      field,
      text("an address, @ITEM or @STEP for the output of another item, or a local file"),
    ]),
  ),
  repeat: text("make it this many times"),
  priority: text("higher goes first"),
};
const optional = Object.fromEntries(Object.entries(fields).map(([name, shape]) => [name, shape.optional()]));
const when = text("leaves out what it is on where it is empty, false, no or 0, such as {{ headline }}");
const id = text("the row's id, such as {{ sku }}; a job adds the combination");
const output = text("wanted name of the output file; / makes folders");

const row = z
  .looseObject({ params: params.optional() }, "an object with the row's fields")
  .catchall(cell)
  .describe("a row: known fields, and any other field as a variable for templates");

const value = z.union(
  [cell, z.strictObject({ value: cell, when })],
  "text, a number, true or false, or an object with value and when",
);
const values = z
  .array(value, "a list of values")
  .min(1, "a list of at least one value")
  .describe("the values that each row is made with");
const paramLists = z.record(z.string(), values, "an object with a list of values for each parameter");
const axes = (meaning: string) =>
  z
    .union(
      [z.object({ params: paramLists.optional() }).catchall(values), z.null()],
      "an object with a list of values for each key",
    )
    .describe(meaning);
const matrix = axes(
  "each row is made with every combination of these values; keys are fields, params.KEY or variables",
);
const zip = axes("each row is made with the first values together, then with the second ones, and so on");

const approve = z
  .union([z.boolean(), z.string().regex(/^(?:true|false)$/i, "true or false")], "true or false")
  .describe("a person has to approve each item before other items use its output");

const step = z
  .strictObject(
    {
      name: z.string("a name").min(1, "a name").describe("becomes part of the item's id and file name"),
      approve: approve.optional(),
      when: when.optional(),
      ...optional,
      output: output.optional(),
      matrix: matrix.optional(),
      zip: zip.optional(),
    },
    "an object with the step's name and fields",
  )
  .describe("an item that each row makes, such as a picture or a voice");

const defaults = z
  .union([z.strictObject({ id: id.optional(), ...optional }), z.null()], "an object with the rows' defaults")
  .describe("values for fields that a row leaves empty");

const target = z
  .string("s3://bucket/prefix, or an https:// address")
  .regex(/^(s3|https?):\/\/[^\s?#]+$/i, "s3://bucket/prefix, or the https:// address of a folder")
  .describe("s3://bucket/prefix, or the https:// address where the files already are");
/** A job file may come from somebody else, so it runs nothing. */
const noCommand =
  "--publish-command, its variable or your own settings: a job file may come from somebody else, so a command in it is not run";
const publish = z
  .union(
    [
      target,
      z.strictObject({
        to: target,
        for: z
          .string("a duration such as 24h")
          .refine((text) => durationIn(text) !== null, "a duration such as 24h")
          .describe("how long the addresses must stay valid")
          .optional(),
        command: z.never(noCommand).optional(),
      }),
    ],
    "s3://bucket/prefix, an https:// address, or an object with to and for",
  )
  .describe("where to publish local input files for the service");

/** Run only once this user has agreed to exactly this command on this machine. */
const afterCommand = (when: string) => z.string("a command").min(1, "a command").describe(when);
const after = z
  .strictObject(
    {
      file: afterCommand("run by the shell after each archived file, which BULKGEN_FILE names").optional(),
      set: afterCommand(
        "run by the shell once everything is archived, with its folder in BULKGEN_FOLDER",
      ).optional(),
      timeout: z
        .string("a duration such as 30m")
        .refine((text) => (durationIn(text) ?? 0) > 0, "a duration such as 30m")
        .describe("how long one command may take; 10 minutes otherwise")
        .optional(),
    },
    "an object with file and set",
  )
  .describe("commands to run after each file and after the set, once you have agreed to them");

const pattern = z.string("a pattern such as photos/**/*.jpg").min(1, "a pattern such as photos/**/*.jpg");

const job = z.strictObject(
  {
    $schema: z.string("an address").describe("this schema, for editors").optional(),
    name: z.string("a name").describe("name of the job; otherwise that of the file").optional(),
    defaults: defaults.optional(),
    rows: z
      .union([z.array(row), z.string()], "an array of rows, or the name of a CSV file")
      .describe("the rows, or the name of a file with them")
      .optional(),
    files: z
      .union(
        [pattern, z.array(pattern).min(1, "at least one pattern")],
        "a pattern such as photos/**/*.jpg, or a list of patterns",
      )
      .describe(
        "in place of rows: each file in the manifest's folder that matches is a row; a pattern after ! leaves files out",
      )
      .optional(),
    vars: z
      .union([z.record(z.string(), cell), z.null()], "an object of texts")
      .describe("variables for templates, the same for every row")
      .optional(),
    tables: z
      .union(
        [z.record(z.string(), z.record(z.string(), cell, "an object of texts")), z.null()],
        "an object of tables",
      )
      .describe('look-up tables for templates: {{ speaker | lookup: "voice" }} reads the table voice')
      .optional(),
    matrix: matrix.optional(),
    zip: zip.optional(),
    when: when.optional(),
    id: id.optional(),
    repeat: fields.repeat.optional(),
    prompt: fields.prompt.optional(),
    output: output.optional(),
    approve: approve.optional(),
    publish: publish.optional(),
    after: after.optional(),
    steps: z.array(step, "a list of steps").min(1, "at least one step").optional(),
  },
  "an array of rows, or an object with rows",
);

/** Rows are checked one by one, each with its number, so the job's schema accepts any rows. */
const jobOfAnyRows = job.extend({
  rows: z.union([z.array(z.unknown()), z.string()], "an array of rows, or the name of a CSV file").optional(),
});

const rowSources = ["rows", "files", "prompt", "matrix", "zip", "steps"];

const savedPlan = {
  message: "the file is a saved plan, which `bulkgen run` takes",
  expected: "a manifest",
  got: "a plan",
};

/** The problems of a job, without its rows. */
export function checkJob(document: Document): Problem[] {
  const place = { file: document.file, row: null };
  if (at(document.plain, ["bulkgen"]) === "plan") return [{ place, ...savedPlan }];
  const problems = problemsOf(document, jobOfAnyRows.safeParse(document.plain).error, [], place);
  const { plain } = document;
  if (isObject(plain) && ["rows", "files"].every((field) => Object.hasOwn(plain, field)))
    problems.push({
      place: { ...place, column: "files", ...document.markAt(["files"]) },
      message: "the job has both rows and files",
      expected: "one of the two",
      got: "both",
    });
  if (!isObject(plain) || rowSources.some((field) => Object.hasOwn(plain, field))) return problems;
  const missing = {
    place: { ...place, column: "rows", ...document.markAt(["rows"]) },
    message: "rows has the wrong form",
    expected: "an array of rows, or the name of a CSV file",
    got: "nothing",
  };
  return [...problems, missing];
}

/** The problems of a row's shape. */
export function checkRow(
  document: Document,
  path: readonly PropertyKey[],
  plain: Plain,
  number: number,
): Problem[] {
  return problemsOf(document, row.safeParse(plain).error, path, rowPlace(document, plain, number));
}

/** Where a row is, for its problems. */
export function rowPlace({ file }: Document, plain: Plain, row: number): Place {
  const id = at(plain, ["id"]);
  return { file, row, ...(typeof id === "string" && id.trim() ? { id } : {}) };
}

function problemsOf(
  document: Document,
  error: z.ZodError | undefined,
  base: readonly PropertyKey[],
  place: Place,
): Problem[] {
  return (error?.issues ?? []).flatMap(innermost).flatMap((wrong) => {
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

type Issue = z.core.$ZodIssue;

/** Of several alternatives, reports the problem inside the one that matched furthest instead of "none fits". */
function innermost(issue: Issue): Issue[] {
  if (issue.code !== "invalid_union") return [issue];
  const further = issue.errors.find((inner) =>
    inner.every(({ path, code }) => path.length > 0 || code === "unrecognized_keys"),
  );
  if (!further || further.length === 0) return [issue];
  return further.flatMap((inner) => innermost({ ...inner, path: [...issue.path, ...inner.path] } as Issue));
}

function unknownField(document: Document, path: readonly PropertyKey[], place: Place): Problem {
  const key = String(path.at(-1));
  const known = Object.keys(
    path.length === 1 ? job.shape : path[0] === "steps" ? step.shape : { id, ...optional },
  );
  const near = nearest(key, known);
  // The job has fields of its own; those of its rows are defaults there.
  const ofRows = path.length === 1 && Object.hasOwn(optional, key);
  return {
    place: { ...place, column: columnOf(path), ...document.markAt(path) },
    message: `unknown field "${key}"${path.length > 1 ? ` in ${String(path[0])}` : ""}`,
    expected: ofRows ? `${key} under defaults, in a row or in a step` : `one of: ${known.join(", ")}`,
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
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (typeof value !== "object") return `"${value}"`;
  // So YAML reads `{{ product }}` without quotes.
  return Object.hasOwn(value, "")
    ? "an object; a text that begins with {{ needs quotes around it"
    : "an object";
}

/** A whole manifest in JSON or YAML: `bulkgen schema manifest` prints it for editors. */
export const manifestShape = z
  .union([job, z.array(row)])
  .describe("rows to generate, or a job that makes them");
