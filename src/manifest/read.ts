import { basename, extname } from "node:path";
import type { Problem } from "../core/problem.js";
import { filledColumns } from "../core/sheet.js";
import { standardInput, standardInputName } from "./bytes.js";
import { isKnown, unusedNote } from "./columns.js";
import { axesOf, combinationsOf, itemsMaxDefault, tooMany } from "./combinations.js";
import { Expander, type Expansion } from "./expand.js";
import { cellPlace, type Defaults, type Manifest, type Row } from "./manifest.js";
import { promptFile } from "./prompt-file.js";
import { readSource, type SourceOptions } from "./read-source.js";
import { defaultCells, toRow } from "./row.js";
import { isUsed, namesFrom } from "./scope.js";
import type { Cells, Source } from "./source.js";

export interface ReadOptions extends SourceOptions {
  /** From the command line; the manifest's own defaults and its rows come before them. */
  defaults?: Defaults;
  /** Take what a spreadsheet changed for what it was, and tell each. */
  repair?: boolean;
  /** A job whose combinations come to more items than this is refused before any of them is made. */
  itemsMax?: number;
  /** The local day, `YYYY-MM-DD`, which templates know as `today`. */
  today?: string;
}

/**
 * Reads a manifest and checks all that can be checked without the service. Problems come back in the manifest, all of
 * them at once; it throws for none.
 */
export async function readManifest(path: string, options: ReadOptions = {}): Promise<Manifest> {
  return manifestOf(path, await readSource(path, options), options);
}

/** The manifest that a source makes: each row in every combination of its job, with its templates rendered. */
export async function manifestOf(path: string, source: Source, options: ReadOptions): Promise<Manifest> {
  const file = path === standardInput ? standardInputName : path;
  const none = source.rows.length === 0 && source.problems.length === 0;
  const bound = none ? noRows(file) : tooMany(source, file, options.itemsMax ?? itemsMaxDefault);
  // Combinations are counted before they are made: there may be more of them than memory holds.
  const { rows, problems, used } = bound
    ? { rows: [], problems: [...source.problems, bound], used: null }
    : expanded(source, await expansionOf(path, source, options), options.repair ?? false);
  const unusedColumns = source.columns.filter((column) => used !== null && !isUsed(column, used));
  return {
    name: source.job?.name ?? basename(file, extname(file)),
    file,
    rows,
    problems: byRow(problems.map((problem) => ({ ...problem, place: namedPlace(problem) }))),
    notes: [
      ...source.notes,
      ...unusedNotes(unusedColumns, source.columns),
      ...(used ? idleNotes(source, used) : []),
    ],
    columns: [...new Set([...source.columns, ...axesOf(source.job).flatMap(({ keys }) => keys)])],
    unusedColumns,
  };
}

interface Expanded {
  rows: Row[];
  problems: Problem[];
  /** Names that templates use. */
  used: ReadonlySet<string>;
}

function expanded(source: Source, expansion: Expansion, repair: boolean): Expanded {
  const expander = new Expander(expansion);
  const rows: Row[] = [];
  const wrong: Problem[] = [];
  for (const [index, each] of source.rows.entries()) {
    for (const made of expander.made(each, index + 1)) {
      const { row, problems } = toRow(made, repair);
      rows.push(row);
      for (const problem of problems) wrong.push(problem);
    }
  }
  return {
    rows,
    problems: [...source.problems, ...expander.problems, ...wrong, ...duplicateIds(rows)],
    used: expansion.rendering?.templates.used ?? new Set(),
  };
}

async function expansionOf(path: string, source: Source, options: ReadOptions): Promise<Expansion> {
  const { job } = source;
  const given = defaultCells(options.defaults ?? {});
  const defaults = {
    cells: { ...given, ...job?.defaults.cells },
    marks: job?.defaults.marks ?? {},
  };
  return {
    file: path === standardInput ? standardInputName : path,
    job,
    defaults,
    combinations: combinationsOf(job),
    today: options.today ?? "",
    rendering: needsRendering(source, defaults.cells)
      ? await renderingOf(path, source, defaults.cells)
      : null,
  };
}

/** The template engine is loaded only for manifests that have something to render. */
async function renderingOf(
  path: string,
  { columns, job }: Source,
  defaults: Cells,
): Promise<Expansion["rendering"]> {
  const [{ Templates }, { PromptFiles }] = await Promise.all([
    import("./template.js"),
    import("./prompt-file.js"),
  ]);
  const names = namesFrom([
    ...columns,
    ...Object.keys(defaults),
    ...Object.keys(job?.vars.cells ?? {}),
    ...(job?.steps.flatMap((step) => Object.keys(step.cells)) ?? []),
    ...axesOf(job).flatMap(({ keys }) => keys),
  ]);
  return { templates: new Templates(names), names, files: new PromptFiles(path) };
}

function needsRendering({ rows, job }: Source, defaults: Cells): boolean {
  const isOne = (text: string) => text.includes("{{") || text.includes("{%") || promptFile(text) !== null;
  const hasOne = (cells: Cells) => Object.values(cells).some(isOne);
  if (hasOne(defaults) || rows.some(({ cells }) => hasOne(cells))) return true;
  const settings = axesOf(job).flatMap((axis) => axis.settings);
  return [...(job?.steps ?? []), ...settings].some(({ cells }) => hasOne(cells));
}

/** Variables and axes that change nothing: an axis then makes the same thing again and again. */
function idleNotes({ job }: Source, used: ReadonlySet<string>): string[] {
  if (!job) return [];
  return [
    ...axesOf(job)
      .filter(({ keys }) => !keys.some((key) => isKnown(key) || used.has(key)))
      .map(
        ({ keys, settings }) =>
          `nothing uses ${keys.join(" and ")}, so each of its ${settings.length} values makes the same thing`,
      ),
    ...Object.keys(job.vars.cells)
      .filter((name) => !used.has(name))
      .map((name) => `the variable "${name}" is used by nothing`),
  ];
}

function namedPlace({ place }: Problem): Problem["place"] {
  return place.file === standardInput ? { ...place, file: standardInputName } : place;
}

/** Problems in the order of the sheet; what concerns the whole file comes first. */
export function byRow(problems: readonly Problem[]): Problem[] {
  return problems.toSorted((a, b) => (a.place.row ?? 0) - (b.place.row ?? 0));
}

function unusedNotes(unused: readonly string[], columns: readonly string[]): string[] {
  return unused.filter((column) => !isFilledIn(column, columns)).map(unusedNote);
}

/** Whether a column is one of those that an export adds: all of them together are nobody's slip. */
function isFilledIn(column: string, columns: readonly string[]): boolean {
  const filled: readonly string[] = filledColumns;
  return filled.includes(column) && filled.every((name) => columns.includes(name));
}

/** The first row with an id keeps it; the problem lies with the later ones. */
function duplicateIds(rows: readonly Row[]): Problem[] {
  const first = new Map<string, Row>();
  return rows.flatMap((row) => {
    if (row.id === null) return [];
    const earlier = first.get(row.id);
    if (earlier === undefined) {
      first.set(row.id, row);
      return [];
    }
    const same = earlier.number === row.number;
    return {
      place: cellPlace(row, "id"),
      message: same
        ? `several items of row ${row.number} have the same id`
        : `rows ${earlier.number} and ${row.number} have the same id`,
      expected: same
        ? "an id whose template names all that tells the items apart, or no template"
        : "an id that no other row has, or none",
      got: row.id,
    };
  });
}

function noRows(file: string): Problem {
  return {
    place: { file, row: null },
    message: "the manifest has no rows",
    expected: "at least one row",
    got: "none",
  };
}
