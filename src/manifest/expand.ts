import { asideWords, numbersOf, type Place, type Problem, rowsText } from "../core/problem.js";
import { axesOf, type Combination, Layers } from "./combinations.js";
import { ParamSets, type RowOptions, rowOf } from "./row.js";
import { columnName, isKnown, labelled, outputName } from "./shape/columns.js";
import { lostCellProblem } from "./shape/damage.js";
import type { LateValues, Row } from "./shape/manifest.js";
import { meansNo } from "./shape/repairs.js";
import {
  type Aside,
  type Cells,
  isTemplate,
  type SourceJob,
  type SourceRow,
  type Written,
} from "./shape/source.js";
import { type PromptFiles, promptFile } from "./templates/prompt-file.js";
import { Scope, variableName } from "./templates/scope.js";
import { LateName, type Names, TemplateFault, type Templates, type Values } from "./templates/template.js";

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
  /** A row is made only to see whether it can be. */
  private isTrying = false;
  private readonly axisKeys: readonly string[];
  private readonly layers: readonly Layers[];
  private readonly sets = new ParamSets();
  /** How many rows were made. */
  private numbered = 0;
  /** How many rows, or combinations of them, were left out by a `when`. */
  private unwanted = 0;
  /** The rows in which a column has no value that a template names, by column. */
  private readonly empty = new Map<string, Set<number>>();

  /** What a `when` says that was probably meant as no, and where. */
  private readonly meantAsNo = { words: new Set<string>(), rows: new Set<number>() };

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
    const ofRow: Row[] = [];
    const unwanted = new Set<string>();
    for (const layers of this.layers) {
      const made = this.made(row, index, layers);
      if (made === "unwanted") unwanted.add(layers.label);
      else if (made) {
        this.numbered++;
        ofRow.push(made);
      }
    }
    const wanted = unwanted.size === 0 ? ofRow : withoutUsersOf(unwanted, ofRow);
    this.unwanted += unwanted.size;
    rows.push(...wanted);
  }

  /** How many rows, or combinations of them, a `when` has left out, and whether nothing else was there. */
  get leftOutByWhen(): { count: number; isAll: boolean } {
    return { count: this.unwanted, isAll: this.unwanted > 0 && this.numbered === 0 };
  }

  /** How many rows were left out as headings and totals. */
  get leftOut(): number {
    return this.asides.heading.length + this.asides.total.length;
  }

  /** Only rows that are made: those that are set aside are tried first. */
  private noteEmpty(column: string, row: number): void {
    if (this.isTrying || !this.from.columns.includes(column)) return;
    const rows = this.empty.get(column) ?? new Set();
    this.empty.set(column, rows.add(row));
  }

  /** Which columns that templates name have no value, and in which rows, once everything is read. */
  emptyNotes(): string[] {
    return [...this.empty].map(
      ([column, rows]) =>
        `"${column}" is empty in ${rowsText(numbersOf([...rows]))}, and a template uses it; when: "{{ ${variableName(column)} }}" leaves such rows out`,
    );
  }

  /** Which rows are made although their `when` probably means no, once everything is read. */
  meantAsNoNotes(): string[] {
    const { words, rows } = this.meantAsNo;
    if (rows.size === 0) return [];
    const said = [...words].map((word) => `"${word}"`).join(", ");
    return [
      `when says ${said} in ${rowsText(numbersOf([...rows]))}, which counts as yes; to leave such rows out, write no`,
    ];
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
    this.isTrying = true;
    const made = this.layers
      .map((layers) => this.made(row, index, layers))
      .filter((each) => each !== "unwanted");
    this.isTrying = false;
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

  private made(row: SourceRow, index: number, layers: Layers): Row | "unwanted" | null {
    const written = layers.written(row);
    const wanted = this.isWanted(row, index, layers, written);
    if (wanted !== true) return wanted === false ? "unwanted" : null;
    const isWhole = row.lost === undefined || !this.losesField(row, row.lost, layers);
    const rendered = this.rendering
      ? this.rendered(row, index, layers, written, this.rendering)
      : { cells: written, lateName: null };
    if (rendered === null || !isWhole) return null;
    const cells = named(rendered.cells, written, {
      label: layers.label,
      implied: this.from.job !== undefined && isImplied(row),
      idOfRow: this.isIdOfRow(row),
    });
    const { lateName } = rendered;
    return rowOf({ row, layers, cells, lateName, sets: this.sets }, this.from, this.problems);
  }

  /** Whether the id is the job's, and names none of its axes nor its steps. */
  private isIdOfRow(row: SourceRow): boolean {
    const id = this.from.job?.defaults.cells["id"];
    if (id === undefined || Object.hasOwn(row.cells, "id")) return false;
    return ![...this.axisKeys, "step"].some((name) => id.includes(name));
  }

  /** What the conditions of a row and its combination say; null if one of them cannot be rendered. */
  private isWanted(row: SourceRow, index: number, layers: Layers, written: Cells): boolean | null {
    const own = row.cells["when"];
    const conditions =
      own === undefined ? layers.when : [...layers.when, { text: own, mark: row.marks?.["when"] }];
    for (const { text, mark } of conditions) {
      if (!this.rendering || !isTemplate(text)) {
        if (!this.agrees(text, row)) return false;
        continue;
      }
      try {
        const scope = this.scopeOf(row, index, layers, written, this.rendering);
        if (!this.agrees(renderedText(text, scope, this.rendering.templates), row)) return false;
      } catch (error) {
        const fault = error instanceof LateName ? new TemplateFault(error.fault, true) : error;
        if (!(fault instanceof TemplateFault)) throw error;
        const isOfRow = text === own;
        if (!isOfRow && fault.cell === null) this.ofJob++;
        this.problemOf(fault, "when", row, layers, { mark, ofJob: !isOfRow });
        return null;
      }
    }
    return true;
  }

  /** Whether what a condition says counts as yes. */
  private agrees(said: string, { number }: SourceRow): boolean {
    if (saysNo(said)) return false;
    if (!this.isTrying && isMeantAsNo(said)) {
      this.meantAsNo.words.add(said.trim());
      this.meantAsNo.rows.add(number);
    }
    return true;
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
    const scopes = new Map<boolean, Scope>();
    let failed = false;
    for (const column in written) {
      const text = written[column] as string;
      if (column === "when" || !isKnown(column) || !needsRendering(column, text)) continue;
      // A name may well have an empty part; what is sent should not.
      const notesEmpty = column !== "id" && column !== "output";
      let scope = scopes.get(notesEmpty);
      scope ??= this.scopeOf(row, index, layers, written, rendering, { notesEmpty });
      scopes.set(notesEmpty, scope);
      cells ??= { ...written };
      try {
        cells[column] = textOf(column, text, scope, rendering);
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
    {
      late = null,
      number = this.numbered + 1,
      notesEmpty = false,
    }: { late?: LateValues | null; number?: number; notesEmpty?: boolean } = {},
  ): Scope {
    const { today, job } = this.from;
    const vars = job?.vars.cells ?? {};
    const { number: rowNumber } = row;
    const onEmpty = (column: string) => this.noteEmpty(column, rowNumber);
    return new Scope(
      { index, row: row.number, number, step, written, cells: row.cells, lost: row.lost ?? {}, axes, late },
      { names, templates, vars, today, onEmpty: notesEmpty ? onEmpty : null },
    );
  }

  private laterNamed(
    row: SourceRow,
    index: number,
    layers: Layers,
    { written, text, rendering }: { written: Cells; text: string; rendering: Rendering },
  ): NonNullable<Row["lateName"]> {
    const number = this.numbered + 1;
    return (late) => {
      const values = this.scopeOf(row, index, layers, written, rendering, { late, number });
      try {
        return textOf("output", text, values, rendering);
      } catch (error) {
        if (!(error instanceof TemplateFault)) throw error;
        const { place } = placed(error, "output", row, layers, this.from.file);
        return { place, ...error.fault };
      }
    };
  }

  private problemOf(
    error: TemplateFault,
    column: string,
    row: SourceRow,
    layers: Layers,
    origin = layers.origin(error.cell ?? column, row),
  ): void {
    const problem = { ...placed(error, column, row, layers, this.from.file, origin), ...error.fault };
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
  { mark, ofJob } = layers.origin(cell ?? field, row),
): { place: Place } {
  const column = cell ?? field;
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

interface Naming {
  label: string;
  /** The row is the empty one of a job without rows. */
  implied: boolean;
  /** The id is a template that tells rows apart, not combinations. */
  idOfRow: boolean;
}

/** The empty row of a job without rows. */
function isImplied(row: SourceRow): boolean {
  return row.mark === undefined && Object.keys(row.cells).length === 0;
}

/**
 * Adds the label of a combination to ids and outputs, unless they are templates: those name what tells the combinations apart.
 * The id of a whole job is the same for all of them, and gets the label if it does not.
 */
function named(cells: Cells, written: Cells, { label, implied, idOfRow }: Naming): Cells {
  if (label === "") return cells;
  const { id = "", output = "" } = cells;
  const own = (column: string) => isTemplate(written[column] ?? "");
  return {
    ...cells,
    ...(id.trim() !== "" && (!own("id") || idOfRow) ? { id: labelled(id.trim(), label) } : {}),
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

/** The rows without those that use the output of a step that is left out; their labels are added to it. */
function withoutUsersOf(unwanted: Set<string>, rows: readonly Row[]): readonly Row[] {
  const kept = rows.filter(({ chain, label, inputs }) => {
    const steps = Object.values(inputs).map((input) => /^@([^[\]]+)(?:\[\d+\])?$/.exec(input)?.[1]);
    const uses = steps.some(
      (step) => step !== undefined && unwanted.has([chain, step].filter(Boolean).join("-")),
    );
    if (uses) unwanted.add(label);
    return !uses;
  });
  return kept.length === rows.length ? kept : withoutUsersOf(unwanted, kept);
}

/** Whether a condition leaves out what it stands on. */
function saysNo(text: string): boolean {
  const word = text.trim().toLowerCase();
  return word === "" || word === "false" || word === "no" || isZero(word);
}

/** Zero as sheets write it: `0,0`, `-0.00`, `0 %`, `0,00 €`, `$0`. */
function isZero(word: string): boolean {
  return /^\p{Sc}?\s*[-+\u2212]?\p{Sc}?[.,]?0[0.,]*(?:e[-+]?\d+)?\s*[%\p{Sc}]?$/u.test(word);
}

const refusals = [
  "n",
  "none",
  "off",
  "-",
  "\u2013",
  "\u2014",
  "n/a",
  "#n/a",
  "na",
  "null",
  "nil",
  "undefined",
];

/** A word that says yes here, though its writer probably meant no. */
function isMeantAsNo(text: string): boolean {
  return meansNo(text) || refusals.includes(text.trim().toLowerCase());
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
