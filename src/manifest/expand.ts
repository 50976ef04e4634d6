import { asideWords, numbersOf, type Place, type Problem } from "../core/problem.js";
import { axesOf, type Combination, Layers } from "./combinations.js";
import { ParamSets, type RowOptions, rowOf } from "./row.js";
import { columnName, isKnown, labelled, outputName } from "./shape/columns.js";
import { lostCellProblem } from "./shape/damage.js";
import type { Row } from "./shape/manifest.js";
import type { Aside, Cells, SourceJob, SourceRow, Written } from "./shape/source.js";
import { type PromptFiles, promptFile } from "./templates/prompt-file.js";
import { Scope } from "./templates/scope.js";
import {
  isTemplate,
  LateName,
  type Names,
  TemplateFault,
  type Templates,
  type Values,
} from "./templates/template.js";

export interface Expansion extends RowOptions {
  file: string;
  job: SourceJob | undefined;
  /** Defaults of the command line, overridden by those of the job. */
  defaults: Written;
  combinations: readonly Combination[];
  /** The columns of the sheet. */
  columns: readonly string[];
  /** The local date: the variable `today` of templates. */
  today: string;
}

/** Renders templates; loaded only for manifests that have templates. */
export interface Rendering {
  templates: Templates;
  names: Names;
  files: PromptFiles;
}

/** Makes rows from source rows and collects their problems. */
export class Expander {
  rendering: Rendering | null = null;
  private problems: Problem[] = [];
  /** Problems of the job's own texts, which are reported once and not for each row. */
  private reported = new Set<string>();
  /** How many of the problems are about the job's own texts. */
  private ofJob = 0;
  private readonly asides: Record<Aside, number[]> = { heading: [], total: [] };
  private readonly axisKeys: readonly string[];
  private readonly layers: readonly Layers[];
  private readonly sets = new ParamSets();

  constructor(private readonly from: Expansion) {
    this.axisKeys = [...new Set(axesOf(from.job).flatMap(({ keys }) => keys))];
    this.layers = from.combinations.map((combination) => new Layers(from, combination));
  }

  /** All rows of a source row, except those whose templates cannot be rendered. `index` counts source rows from 1. */
  add(row: SourceRow, index: number, rows: Row[]): void {
    if (row.aside !== undefined && this.cannotBeMade(row, index)) {
      this.setAside(row, row.aside);
      return;
    }
    if (row.misfit !== undefined) {
      this.problems.push(row.misfit);
      return;
    }
    for (const key of this.axisKeys)
      if (Object.hasOwn(row.cells, key)) this.problems.push(conflict(row, key));
    for (const layers of this.layers) {
      const made = this.made(row, index, layers);
      if (made) rows.push(made);
    }
  }

  /** How many rows were left out as headings and totals. */
  get leftOut(): number {
    return this.asides.heading.length + this.asides.total.length;
  }

  /** Which rows were left out, once everything is read. */
  asideNotes(): string[] {
    const { heading, total } = this.asides;
    const left = this.leftOut;
    if (left === 0) return [];
    const all = asideWords(numbersOf(heading), numbersOf(total));
    return [`${all}: ${left === 1 ? "it is" : "they are"} left out`];
  }

  private setAside({ file, number, mark, cells }: SourceRow, aside: Aside): void {
    if (this.from.skipHeadings) {
      this.asides[aside].push(number);
      return;
    }
    this.problems.push({
      place: { file, row: number, ...mark },
      message: `the row looks like a ${aside}`,
      expected: "a row to make; --skip-headings leaves out just the rows that look like headings or totals",
      got: Object.values(cells)[0] ?? "",
      aside,
    });
  }

  /** Whether a row has a problem, or lacks what the other rows have, also with its defaults. */
  private cannotBeMade(row: SourceRow, index: number): boolean {
    if (row.misfit !== undefined) return true;
    const { problems, reported } = this;
    this.problems = [];
    this.reported = new Set();
    this.ofJob = 0;
    const made = this.layers.map((layers) => this.made(row, index, layers));
    // What is wrong with a text of the job says nothing about the row.
    if (this.ofJob > 0) {
      this.problems = problems;
      this.reported = reported;
      return false;
    }
    const isWrong = this.problems.length > 0 || made.includes(null);
    this.problems = problems;
    this.reported = reported;
    const has = (column: string) => this.from.columns.includes(column);
    const lacks = ({ model, prompt, inputs }: Row) =>
      (model === "" && has("model")) ||
      ((prompt ?? "").trim() === "" && Object.keys(inputs).length === 0 && has("prompt"));
    // The header once more: no model is called so.
    return (
      isWrong || made.some((each) => each !== null && (lacks(each) || columnName(each.model) === "model"))
    );
  }

  /** The problems since the last call. */
  take(): Problem[] {
    const { problems } = this;
    this.problems = [];
    return problems;
  }

  private made(row: SourceRow, index: number, layers: Layers): Row | null {
    const written = layers.written(row);
    const isWhole = row.lost === undefined || !this.losesField(row, row.lost, layers);
    const rendered = this.rendering
      ? this.rendered(row, index, layers, written, this.rendering)
      : { cells: written, lateName: null };
    if (rendered === null || !isWhole) return null;
    const cells = named(rendered.cells, written, layers.label, this.from.job !== undefined && isImplied(row));
    const { lateName } = rendered;
    return rowOf({ row, layers, cells, lateName, sets: this.sets }, this.from, this.problems);
  }

  /** Whether a field has no value because its cell was lost, which is a problem. */
  private losesField(row: SourceRow, lost: NonNullable<SourceRow["lost"]>, layers: Layers): boolean {
    const fields = Object.entries(lost).filter(([column]) => isKnown(column) && !layers.overrides(column));
    for (const [column, cell] of fields)
      this.problemOf(new TemplateFault(lostCellProblem(cell), false, column), column, row, layers);
    return fields.length > 0;
  }

  private rendered(
    row: SourceRow,
    index: number,
    layers: Layers,
    written: Cells,
    rendering: Rendering,
  ): { cells: Cells; lateName: Row["lateName"] } | null {
    let lateName: Row["lateName"] = null;
    let cells: Cells | null = null;
    let values: Scope | null = null;
    let failed = false;
    for (const column in written) {
      const text = written[column] as string;
      if (!isKnown(column) || !needsRendering(column, text)) continue;
      values ??= this.scopeOf(row, index, layers, written, rendering);
      cells ??= { ...written };
      try {
        cells[column] = textOf(column, text, values, rendering);
      } catch (error) {
        if (error instanceof LateName && column === "output") {
          delete cells[column];
          lateName = this.laterNamed(row, index, layers, { written, text, rendering });
        } else {
          const fault = error instanceof LateName ? new TemplateFault(error.fault, true) : error;
          if (!(fault instanceof TemplateFault)) throw error;
          if (fault.cell === null && layers.origin(column, row).ofJob) this.ofJob++;
          this.problemOf(fault, column, row, layers);
          failed = true;
        }
      }
    }
    return failed ? null : { cells: cells ?? written, lateName };
  }

  private scopeOf(
    row: SourceRow,
    index: number,
    { axes, step }: Layers,
    written: Cells,
    { names, templates }: Rendering,
    late: { category: string; key: string } | null = null,
  ): Scope {
    const { today, job } = this.from;
    const vars = job?.vars.cells ?? {};
    return new Scope(
      { index, row: row.number, step, written, cells: row.cells, lost: row.lost ?? {}, axes, late },
      { names, templates, vars, today },
    );
  }

  private laterNamed(
    row: SourceRow,
    index: number,
    layers: Layers,
    { written, text, rendering }: { written: Cells; text: string; rendering: Rendering },
  ): NonNullable<Row["lateName"]> {
    return (late) => {
      const values = this.scopeOf(row, index, layers, written, rendering, late);
      try {
        return textOf("output", text, values, rendering);
      } catch (error) {
        if (!(error instanceof TemplateFault)) throw error;
        const { place } = placed(error, "output", row, layers, this.from.file);
        return { place, ...error.fault };
      }
    };
  }

  private problemOf(error: TemplateFault, column: string, row: SourceRow, layers: Layers): void {
    const problem = { ...placed(error, column, row, layers, this.from.file), ...error.fault };
    const key = JSON.stringify([problem.place, problem.message]);
    if (this.reported.has(key)) return;
    // A fault of one rendering concerns one item; a fault of a text or a cell concerns every item that needs it.
    if ((error.everywhere || error.cell !== null) && this.reported.size < reportedMax) this.reported.add(key);
    this.problems.push(problem);
  }
}

/** The most remembered texts: a job has fewer, but rows may have more. */
const reportedMax = 10_000;

function placed(
  { everywhere, cell }: TemplateFault,
  field: string,
  row: SourceRow,
  layers: Layers,
  file: string,
): { place: Place } {
  const column = cell ?? field;
  const { mark, ofJob } = layers.origin(column, row);
  if (ofJob && everywhere) return { place: { file, row: null, column, ...mark } };
  const id = row.cells["id"]?.trim();
  const ofRow: Place = {
    file: row.file,
    row: row.number,
    ...row.mark,
    ...(id ? { id } : {}),
    ...(everywhere || cell !== null || layers.text === "" ? {} : { combination: layers.text }),
  };
  return { place: { ...ofRow, column, ...mark } };
}

function textOf(column: string, text: string, values: Values, { templates, files }: Rendering): string {
  const said = renderedText(text, values, templates);
  const file = column === "prompt" ? promptFile(said) : null;
  return file === null ? said : renderedText(files.text(file), values, templates);
}

/** The empty row of a job without rows. */
function isImplied(row: SourceRow): boolean {
  return row.mark === undefined && Object.keys(row.cells).length === 0;
}

/** Adds the label of a combination to ids and outputs, unless they are templates. */
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

/** Whether the text of a field is a template, or names a prompt file. */
export function needsRendering(column: string, text: string): boolean {
  return isTemplate(text) || (column === "prompt" && promptFile(text) !== null);
}

function renderedText(text: string, values: Values, templates: Templates): string {
  if (!isTemplate(text)) return text;
  const template = templates.compile(text);
  if (typeof template !== "function") throw new TemplateFault(template, true);
  return template(values);
}

function conflict(row: SourceRow, column: string): Problem {
  const id = row.cells["id"]?.trim();
  return {
    place: { file: row.file, row: row.number, ...(id ? { id } : {}), column, ...row.marks?.[column] },
    message: `the row sets ${column}, which the job's matrix or zip sets too`,
    expected: "one of the two",
    got: row.cells[column] ?? "",
  };
}
