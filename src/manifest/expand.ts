import type { Place, Problem } from "../core/problem.js";
import { isKnown, paramKey } from "./columns.js";
import { axesOf, type Combination } from "./combinations.js";
import { type Fault, TemplateFault } from "./fault.js";
import { labelled, outputName } from "./item-names.js";
import type { Mark } from "./manifest.js";
import { type PromptFiles, promptFile } from "./prompt-file.js";
import { scopeOf } from "./scope.js";
import type { Cells, Job, SourceRow, Written } from "./source.js";
import { isTemplate, type Names, type Scope, type Templates } from "./template.js";

/** A row in one of its combinations, with its templates rendered: what an item is made from. */
export interface Made {
  number: number;
  place: Place;
  /** The fields that are known, filled up from the defaults. */
  cells: Cells;
  /** Those of them that the row does not ask for by itself: a model that does not take one goes without. */
  byDefault: ReadonlySet<string>;
  /** The row as written, and what its combination adds. */
  columns: Cells;
  label: string;
  marks: Record<string, Mark>;
}

export interface Expansion {
  file: string;
  job: Job | undefined;
  /** Of the command line, and of the job over them. */
  defaults: Written;
  combinations: readonly Combination[];
  /** The local day, as templates know it. */
  today: string;
  /** Null when the manifest has nothing to render. */
  rendering: { templates: Templates; names: Names; files: PromptFiles } | null;
}

/** Makes items of rows, one row after the other, and gathers what is wrong with their templates. */
export class Expander {
  readonly problems: Problem[] = [];
  /** What was told of the job's own texts, which every row meets again. */
  private readonly told = new Set<string>();
  private readonly axisKeys: ReadonlySet<string>;

  constructor(private readonly from: Expansion) {
    this.axisKeys = new Set(axesOf(from.job).flatMap(({ keys }) => keys));
  }

  /** All items of one row, without those whose templates cannot be rendered. `index` counts rows from 1. */
  made(row: SourceRow, index: number): Made[] {
    for (const key of this.axisKeys) if (row.cells[key] !== undefined) this.problems.push(conflict(row, key));
    return this.from.combinations.flatMap((combination) => {
      const layers = layersOf(row, combination, this.from);
      const cells = this.rendered(row, index, combination, layers);
      return cells ? madeOf(row, combination, layers, cells, this.from) : [];
    });
  }

  private rendered(row: SourceRow, index: number, combination: Combination, layers: Layers): Cells | null {
    const { rendering, today, job } = this.from;
    const fields = Object.entries(layers.written).filter(([column]) => isKnown(column));
    const toRender = rendering ? fields.filter(([column, text]) => needsRendering(column, text)) : [];
    if (!rendering || toRender.length === 0) return Object.fromEntries(fields);
    const { templates, names } = rendering;
    const step = job?.steps.find(({ cells }) => cells === combination.stepCells)?.name ?? null;
    const own = Object.entries({ ...row.cells, ...combination.cells });
    const model = layers.written["model"] ?? null;
    const values: [string, string | number | null][] = [
      ...Object.entries({ index, row: row.number, step, today }),
      ...fields,
      ...Object.entries(job?.vars.cells ?? {}),
      ...own,
      ["model", model],
    ];
    const scope = scopeOf(values, names, templates);
    const cells = Object.fromEntries(fields);
    let failed = false;
    for (const [column, text] of toRender) {
      try {
        cells[column] = this.text(column, text, scope, rendering);
      } catch (error) {
        if (!(error instanceof TemplateFault)) throw error;
        this.tell(error, column, row, combination, layers);
        failed = true;
      }
    }
    return failed ? null : cells;
  }

  private text(
    column: string,
    text: string,
    scope: Scope,
    { templates, files }: NonNullable<Expansion["rendering"]>,
  ): string {
    const said = renderedText(text, scope, templates);
    const file = column === "prompt" ? promptFile(said) : null;
    return file === null ? said : renderedText(files.text(file), scope, templates);
  }

  private tell(
    { fault, everywhere }: TemplateFault,
    column: string,
    row: SourceRow,
    combination: Combination,
    { origin }: Layers,
  ): void {
    const { mark, ofJob } = origin(column);
    const id = row.cells["id"]?.trim();
    const ofRow: Place = {
      file: row.file,
      row: row.number,
      ...row.mark,
      ...(id ? { id } : {}),
      ...(everywhere || combination.text === "" ? {} : { combination: combination.text }),
    };
    const place: Place =
      ofJob && everywhere
        ? { file: this.from.file, row: null, column, ...mark }
        : { ...ofRow, column, ...mark };
    const key = JSON.stringify([place, fault.message]);
    if (this.told.has(key)) return;
    // A runtime fault is of one item alone, so only what comes again is worth remembering.
    if (everywhere) this.told.add(key);
    this.problems.push({ place, ...fault });
  }
}

/** Where a field's text comes from: a step says more than the row, an axis as well, and a default says least. */
interface Layers {
  written: Cells;
  marks: Record<string, Mark>;
  byDefault(column: string): boolean;
  origin(column: string): { mark: Mark | undefined; ofJob: boolean };
}

function layersOf(row: SourceRow, { cells, stepCells, marks }: Combination, from: Expansion): Layers {
  const { defaults, job } = from;
  const severalSteps = (job?.steps.length ?? 0) > 1;
  const has = (layer: Cells, column: string) => Object.hasOwn(layer, column);
  return {
    written: { ...defaults.cells, ...row.cells, ...cells, ...stepCells },
    marks: { ...defaults.marks, ...row.marks, ...marks },
    byDefault(column) {
      if (has(stepCells, column)) return false;
      // One row, several models: what is meant for the picture is not meant for the voice.
      if (severalSteps && paramKey(column) !== null) return true;
      return !has(cells, column) && !has(row.cells, column);
    },
    origin(column) {
      const ofRow = has(row.cells, column) && !has(cells, column) && !has(stepCells, column);
      const layer = has(stepCells, column) || has(cells, column) ? marks : defaults.marks;
      return { mark: (ofRow ? row.marks : layer)?.[column], ofJob: !ofRow };
    },
  };
}

function madeOf(
  row: SourceRow,
  combination: Combination,
  layers: Layers,
  rendered: Cells,
  { job }: Expansion,
): Made {
  const { label } = combination;
  const cells = named(rendered, layers.written, label, job !== undefined && isImplied(row));
  const id = cells["id"]?.trim();
  const place: Place = {
    file: row.file,
    row: row.number,
    ...row.mark,
    ...(id ? { id } : {}),
    ...(combination.text === "" ? {} : { combination: combination.text }),
  };
  return {
    number: row.number,
    place,
    cells,
    byDefault: new Set(Object.keys(cells).filter(layers.byDefault)),
    columns: { ...row.cells, ...combination.cells },
    label,
    marks: layers.marks,
  };
}

/** The row of a job that has none says nothing of its own. */
function isImplied(row: SourceRow): boolean {
  return row.mark === undefined && Object.keys(row.cells).length === 0;
}

/** Ids and outputs tell combinations apart; one that is a template does so by itself. */
function named(cells: Cells, written: Cells, label: string, implied: boolean): Cells {
  if (label === "") return cells;
  const { id = "", output = "" } = cells;
  const own = (column: string) => isTemplate(written[column] ?? "");
  return {
    ...cells,
    ...(id.trim() !== "" && !own("id") ? { id: labelled(id.trim(), label) } : {}),
    ...(implied && id === "" ? { id: label } : {}),
    ...(output.trim() !== "" && !own("output") ? { output: labelled(outputName(output.trim()), label) } : {}),
  };
}

function needsRendering(column: string, text: string): boolean {
  return isTemplate(text) || (column === "prompt" && promptFile(text) !== null);
}

function renderedText(text: string, scope: Scope, templates: Templates): string {
  if (!isTemplate(text)) return text;
  const template = templates.compile(text);
  if (typeof template !== "function") throw new TemplateFault(template, true);
  return template(scope);
}

function conflict(row: SourceRow, column: string): Problem {
  const id = row.cells["id"]?.trim();
  const fault: Fault = {
    message: `the row says ${column}, which the job's matrix or zip sets`,
    expected: "the one or the other",
    got: row.cells[column] ?? "",
  };
  const place = { file: row.file, row: row.number, ...(id ? { id } : {}), column, ...row.marks?.[column] };
  return { place, ...fault };
}
