import { basename, extname } from "node:path";
import { filledColumns } from "../core/ports/sheet.js";
import type { Problem } from "../core/problem.js";
import { axesOf, Bound, combinationsOf, itemsMaxDefault } from "./combinations.js";
import { Expander, type Expansion, needsRendering, type Rendering } from "./expand.js";
import { standardInput, standardInputName } from "./formats/bytes.js";
import { openSource, type SourceOptions } from "./read-source.js";
import { defaultCells } from "./row.js";
import { isKnown, unusedNote } from "./shape/columns.js";
import type { Defaults, End, Manifest, Part, Row } from "./shape/manifest.js";
import type { Cells, Source, SourceBatch } from "./shape/source.js";
import { isUsed, namesFrom } from "./templates/scope.js";

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
 * Opens a manifest, to be read a part at a time: each row comes in every combination of its job, with its templates
 * rendered. All is checked that can be checked without the service; problems come with the parts, and it throws for none.
 */
export async function openManifest(path: string, options: ReadOptions = {}): Promise<Manifest> {
  return manifestOf(path, await openSource(path, options), options);
}

/** The manifest that a source makes. */
export function manifestOf(path: string, source: Source, options: ReadOptions): Manifest {
  const file = path === standardInput ? standardInputName : path;
  return {
    name: source.job?.name ?? basename(file, extname(file)),
    file,
    columns: [...new Set([...source.columns, ...axesOf(source.job).flatMap(({ keys }) => keys)])],
    parts: () => partsOf(path, file, source, options),
  };
}

async function* partsOf(
  path: string,
  file: string,
  source: Source,
  options: ReadOptions,
): AsyncGenerator<Part, End> {
  const bound = new Bound(source.job, options.itemsMax ?? itemsMaxDefault);
  const expansion = expansionOf(file, source, options, bound);
  const expander = new Expander(expansion);
  const notes = [...source.notes];
  let wrong = source.problems.length > 0;
  yield { rows: [], problems: source.problems };
  for await (const batch of source.batches()) {
    expander.rendering ??= needsEngine(batch, expansion) ? await renderingOf(path, source, expansion) : null;
    const rows: Row[] = [];
    for (const row of batch.rows) {
      bound.add(row.cells);
      if (!bound.exceeded) expander.add(row, bound.rows, rows);
    }
    notes.push(...(batch.notes ?? []));
    wrong ||= batch.problems.length > 0;
    yield { rows, problems: [...batch.problems, ...expander.take()].map(namedPlace) };
  }
  const none = bound.rows === 0 && !wrong;
  return {
    ...unusedOf(source, notes, expander.rendering?.templates.used ?? new Set(), bound.rows === 0),
    refusal: none ? noRows(file) : bound.exceeded ? bound.problem(file) : null,
  };
}

function unusedOf(
  source: Source,
  notes: readonly string[],
  used: ReadonlySet<string>,
  empty: boolean,
): Pick<End, "notes" | "unusedColumns"> {
  const unusedColumns = empty ? [] : source.columns.filter((column) => !isUsed(column, used));
  const idle = empty ? [] : idleNotes(source, used);
  return { notes: [...notes, ...unusedNotes(unusedColumns, source.columns), ...idle], unusedColumns };
}

function expansionOf(file: string, { job }: Source, options: ReadOptions, bound: Bound): Expansion {
  return {
    file,
    job,
    defaults: {
      cells: { ...defaultCells(options.defaults ?? {}), ...job?.defaults.cells },
      marks: job?.defaults.marks ?? {},
    },
    // There may be more of them than memory holds.
    combinations: bound.eachExceeds ? [] : combinationsOf(job),
    today: options.today ?? "",
    repair: options.repair ?? false,
  };
}

/** The template engine is loaded only for manifests that have something to render, once that shows. */
async function renderingOf(
  path: string,
  { columns, job }: Source,
  { defaults }: Expansion,
): Promise<Rendering> {
  const [{ Templates }, { PromptFiles }] = await Promise.all([
    import("./templates/template.js"),
    import("./templates/prompt-file.js"),
  ]);
  const names = namesFrom([
    ...columns,
    ...Object.keys(defaults.cells),
    ...Object.keys(job?.vars.cells ?? {}),
    ...(job?.steps.flatMap((step) => Object.keys(step.cells)) ?? []),
    ...axesOf(job).flatMap(({ keys }) => keys),
  ]);
  return { templates: new Templates(names), names, files: new PromptFiles(path) };
}

function needsEngine({ rows }: SourceBatch, { defaults, job }: Expansion): boolean {
  const hasOne = (cells: Cells) => {
    for (const column in cells) if (needsRendering("prompt", cells[column] as string)) return true;
    return false;
  };
  if (hasOne(defaults.cells) || rows.some(({ cells }) => hasOne(cells))) return true;
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

function namedPlace(problem: Problem): Problem {
  const { place } = problem;
  return place.file === standardInput
    ? { ...problem, place: { ...place, file: standardInputName } }
    : problem;
}

function unusedNotes(unused: readonly string[], columns: readonly string[]): string[] {
  return unused.filter((column) => !isFilledIn(column, columns)).map(unusedNote);
}

/** Whether a column is one of those that an export adds: all of them together are nobody's slip. */
function isFilledIn(column: string, columns: readonly string[]): boolean {
  const filled: readonly string[] = filledColumns;
  return filled.includes(column) && filled.every((name) => columns.includes(name));
}

function noRows(file: string): Problem {
  return {
    place: { file, row: null },
    message: "the manifest has no rows",
    expected: "at least one row",
    got: "none",
  };
}
