import type { Place, Problem } from "../../core/problem.js";
import { durationIn } from "../../text/amounts.js";
import { type Document, isObject, type Plain } from "../formats/document.js";
import { columnName, paramColumn } from "../shape/columns.js";
import type { Mark } from "../shape/manifest.js";
import {
  type Axis,
  type Condition,
  isTemplate,
  noWritten,
  type SourceJob,
  type SourceSetting,
  type SourceStep,
  type Written,
} from "../shape/source.js";

/** Fields that may be at the top of a job instead of in its defaults. */
const topFields = ["id", "prompt", "output", "repeat"] as const;

type Fields = { [key: string]: Plain };

/** The fields of a job besides its rows. Its shape was checked before. */
export function jobOf(document: Document, top: Fields): { job: SourceJob; problems: Problem[] } {
  const problems: Problem[] = [];
  const place = { file: document.file, row: null };
  const own = (path: readonly PropertyKey[], fields: Plain | undefined): Written =>
    isObject(fields) ? fromJob(document, writtenAt(document, fields, path, place, problems)) : noWritten;
  const defaults = own(["defaults"], top["defaults"]);
  const above = own([], Object.fromEntries(topFields.map((field) => [field, top[field] ?? null])));
  for (const column of Object.keys(above.cells)) {
    if (defaults.cells[column] !== undefined) problems.push(saidTwice(document, column, above.marks[column]));
  }
  const axes = axesOf(document, top, [], problems);
  const name = typeof top["name"] === "string" ? top["name"].trim() : "";
  const steps = (Array.isArray(top["steps"]) ? top["steps"] : []).map((plain, index) =>
    stepOf(document, plain as Fields, ["steps", index], problems),
  );
  problems.push(...sameSteps(document, steps));
  return {
    job: {
      ...(name === "" ? {} : { name }),
      ...publishOf(document, top["publish"]),
      ...afterOf(document, top["after"]),
      defaults: joined(defaults, above),
      vars: own(["vars"], top["vars"]),
      axes,
      steps,
      approve: isTrue(top["approve"]),
      ...whenOf(document, top["when"], ["when"]),
      tables: tablesOf(document, top["tables"], problems),
    },
    problems,
  };
}

function publishOf(document: Document, plain: Plain | undefined): Pick<SourceJob, "publish"> {
  const { to, for: time }: Record<string, Plain | undefined> = isObject(plain) ? plain : { to: plain };
  if (typeof to !== "string") return {};
  const expiresMs = typeof time === "string" ? durationIn(time) : null;
  return { publish: { to, expiresMs, mark: document.markAt(["publish"]) } };
}

function afterOf(document: Document, plain: Plain | undefined): Pick<SourceJob, "after"> {
  if (!isObject(plain)) return {};
  const { file, set, timeout } = plain as Record<string, Plain | undefined>;
  const timeoutMs = typeof timeout === "string" ? durationIn(timeout) : null;
  return {
    after: {
      ...(typeof file === "string" ? { file } : {}),
      ...(typeof set === "string" ? { set } : {}),
      ...(timeoutMs === null ? {} : { timeoutMs }),
      marks: { file: document.markAt(["after", "file"]), set: document.markAt(["after", "set"]) },
    },
  };
}

function stepOf(
  document: Document,
  plain: Fields,
  path: readonly PropertyKey[],
  problems: Problem[],
): SourceStep {
  const { name, approve, when, matrix: _matrix, zip: _zip, ...fields } = plain;
  return {
    name: String(name).trim(),
    ...fromJob(document, writtenAt(document, fields, path, { file: document.file, row: null }, problems)),
    axes: axesOf(document, plain, path, problems),
    approve: isTrue(approve),
    ...whenOf(document, when, [...path, "when"]),
  };
}

/** An empty condition says no, like one that a template renders as nothing. */
function whenOf(
  document: Document,
  plain: Plain | undefined,
  path: readonly PropertyKey[],
): { when?: Condition } {
  if (plain === undefined) return {};
  const { file } = document;
  return { when: { text: typeof plain === "string" ? plain : "", mark: { ...document.markAt(path), file } } };
}

/** The values of tables are texts: a template that looks one up is not rendered again. */
function tablesOf(document: Document, plain: Plain | undefined, problems: Problem[]): SourceJob["tables"] {
  if (!isObject(plain)) return {};
  const texts = (name: string, table: Plain) =>
    Object.fromEntries(
      Object.entries(isObject(table) ? table : {}).map(([key, value]) => {
        const text = typeof value === "string" ? value : "";
        if (isTemplate(text)) problems.push(templateInTable(document, name, key, text));
        return [key, text];
      }),
    );
  return Object.fromEntries(Object.entries(plain).map(([name, table]) => [name, texts(name, table)]));
}

function templateInTable(document: Document, name: string, key: string, got: string): Problem {
  const mark = document.markAt(["tables", name, key]);
  return {
    place: { file: document.file, row: null, column: `tables.${name}.${key}`, ...mark },
    message: "the value of a table is a template, and would be used as it is written",
    expected: "a text without {{ and {%; put the template around the lookup",
    got,
  };
}

function isTrue(plain: Plain | undefined): boolean {
  return typeof plain === "string" && plain.toLowerCase() === "true";
}

/** Every key of the matrix is an axis; all keys of the zip together are one axis. */
function axesOf(document: Document, from: Fields, path: readonly PropertyKey[], problems: Problem[]): Axis[] {
  const matrix = listsIn(document, from["matrix"], [...path, "matrix"]);
  const zip = listsIn(document, from["zip"], [...path, "zip"]);
  const [first, ...others] = zip;
  for (const { key, values, mark } of others) {
    if (first && values.length !== first.values.length) {
      problems.push({
        place: { file: document.file, row: null, column: `zip.${key}`, ...mark },
        message: "the lists of a zip must be equally long",
        expected: `${first.values.length} values, as in ${first.key}`,
        got: String(values.length),
      });
    }
  }
  const seen = new Map<string, List>();
  for (const list of [...matrix, ...zip]) {
    const wrong = seen.has(list.key)
      ? "is listed twice"
      : keysOfNames.includes(list.key)
        ? "names the item"
        : null;
    if (wrong) {
      problems.push({
        place: { file: document.file, row: null, column: list.key, ...list.mark },
        message: `${list.key} cannot be varied: it ${wrong}`,
        expected: "a parameter, a field such as model or prompt, or a variable, once",
        got: list.key,
      });
    }
    seen.set(list.key, list);
  }
  const usable = ({ key }: List) => !keysOfNames.includes(key);
  const together = zip.filter(usable);
  return [
    ...matrix.filter(usable).map((list) => axis(document.file, [list])),
    ...(together.length > 0 ? [axis(document.file, together)] : []),
  ];
}

const keysOfNames = ["id", "output", "repeat"];

interface List {
  key: string;
  values: { text: string; mark: Mark; when?: Condition }[];
  mark: Mark;
}

/** The lists of a matrix or a zip, including those below `params`. */
function listsIn(document: Document, plain: Plain | undefined, path: readonly PropertyKey[]): List[] {
  if (!isObject(plain)) return [];
  return Object.entries(plain).flatMap(([written, lists]): List[] => {
    const at = [...path, written];
    if (isObject(lists)) {
      return Object.entries(lists).map(([key, list]) =>
        listOf(document, paramColumn(key.trim()), list, [...at, key]),
      );
    }
    return [listOf(document, columnName(written), lists, at)];
  });
}

function listOf(document: Document, key: string, plain: Plain, path: readonly PropertyKey[]): List {
  const values = (Array.isArray(plain) ? plain : []).map((entry, index) => {
    const at = [...path, index];
    const value = isObject(entry) ? entry["value"] : entry;
    const when = isObject(entry) ? whenOf(document, entry["when"], [...at, "when"]) : {};
    return { text: typeof value === "string" ? value : "", mark: document.markAt(at), ...when };
  });
  return { key, values, mark: document.markAt(path) };
}

function axis(file: string, lists: readonly List[]): Axis {
  const length = Math.max(0, ...lists.map(({ values }) => values.length));
  // A zip is named by its first variable: `square` says more than the sizes and voices with it.
  const named = lists.find(({ key }) => !key.includes(".")) ?? lists[0];
  const labels = labelsOf(named?.values.map(({ text }) => text) ?? []);
  const settings = Array.from({ length }, (_, index): SourceSetting => {
    const set = lists.flatMap(({ key, values }) => {
      const value = values[index];
      return value === undefined ? [] : [{ key, ...value }];
    });
    return {
      label: labels[index] ?? String(index + 1),
      cells: Object.fromEntries(set.map(({ key, text }) => [key, text])),
      marks: Object.fromEntries(set.map(({ key, mark }) => [key, { ...mark, file }])),
      when: set.flatMap(({ when }) => when ?? []),
    };
  });
  return { keys: lists.map(({ key }) => key), settings };
}

/** Longer values are named by their number. */
const labelCharactersMax = 24;

/** Short, distinct names of values: `16:9` is `16x9`; prompts and URLs are named by their number. */
function labelsOf(values: readonly string[]): string[] {
  const labels = values.map((value) =>
    value
      .replace(/(?<=\d):(?=\d)/g, "x")
      .replace(/[^\p{L}\p{N}._]+/gu, "-")
      .replace(/^[-.]+|[-.]+$/g, ""),
  );
  const short = labels.every(
    (label) => label !== "" && label.length <= labelCharactersMax && !label.includes("{"),
  );
  const different = new Set(labels.map((label) => label.toLowerCase())).size === labels.length;
  return short && different ? labels : values.map((_, index) => String(index + 1));
}

/** The later of two values wins. */
function joined(first: Written, second: Written): Written {
  return { cells: { ...first.cells, ...second.cells }, marks: { ...first.marks, ...second.marks } };
}

/** Applies the fields of a job to rows of another file. */
function fromJob({ file }: Document, { cells, marks }: Written): Written {
  return {
    cells,
    marks: Object.fromEntries(Object.entries(marks).map(([column, mark]) => [column, { ...mark, file }])),
  };
}

function saidTwice({ file }: Document, column: string, mark: Mark | undefined): Problem {
  return {
    place: { file, row: null, column, ...mark },
    message: `${column} is set at the top of the job and in its defaults`,
    expected: "one of the two",
    got: "both",
  };
}

function sameSteps({ file, markAt }: Document, steps: readonly SourceStep[]): Problem[] {
  const names = new Set<string>();
  return steps.flatMap(({ name }, index): Problem[] => {
    const folded = name.toLowerCase();
    if (!names.has(folded)) {
      names.add(folded);
      return [];
    }
    return [
      {
        place: { file, row: null, column: "steps", ...markAt(["steps", index, "name"]) },
        message: `two steps are named "${name}"`,
        expected: "a different name for each step",
        got: name,
      },
    ];
  });
}

/**
 * The cells of a checked object, with their places. Nested params become `params.KEY`. Two fields that mean the same
 * column, such as `Prompt` and `prompt`, are a problem at `place`.
 */
export function writtenAt(
  document: Document,
  object: { [key: string]: Plain },
  path: readonly PropertyKey[],
  place: Place,
  problems: Problem[],
): Written {
  const found = Object.entries(object).flatMap(([key, value]): Field[] => {
    if (key === "params" && isObject(value)) {
      return Object.entries(value).flatMap(([name, text]) => {
        const mark = document.markAt([...path, key, name]);
        return isText(text)
          ? [{ column: paramColumn(name.trim()), name: `params: ${name}`, text, mark }]
          : [];
      });
    }
    return isText(value)
      ? [{ column: columnName(key), name: key, text: value, mark: document.markAt([...path, key]) }]
      : [];
  });
  const names = new Map<string, string>();
  for (const { column, name, mark } of found) {
    const other = names.get(column);
    if (other !== undefined) problems.push(sameColumn({ ...place, column, ...mark }, other, name));
    names.set(column, name);
  }
  return {
    cells: Object.fromEntries(found.map(({ column, text }) => [column, text])),
    marks: Object.fromEntries(found.map(({ column, mark }) => [column, mark])),
  };
}

/** A field with a value. */
interface Field {
  column: string;
  /** As it is written. */
  name: string;
  text: string;
  mark: Mark;
}

function sameColumn(place: Place, first: string, second: string): Problem {
  return {
    place,
    message: `two fields mean ${place.column}`,
    expected: "one of the two",
    got: `${JSON.stringify(first)} and ${JSON.stringify(second)}`,
  };
}

function isText(value: Plain): value is string {
  return typeof value === "string" && value.trim() !== "";
}
