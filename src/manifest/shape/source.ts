import type { Problem } from "../../core/problem.js";
import type { JobAfter, JobPublish, Mark } from "./manifest.js";

/** The form into which all formats are read: cells by column, without their meaning. */
export interface Source {
  /** All columns of the rows, known before the first row is read. */
  columns: string[];
  /** Those of them that nobody wrote, so that it is no mistake if nothing uses them. */
  addedColumns?: readonly string[];
  /** Problems of the file as a whole and of its beginning. */
  problems: Problem[];
  notes: string[];
  /** The fields of a job besides its rows. */
  job?: SourceJob;
  /** The file that a job names for its rows. */
  rowsFile?: string;
  /** The job of which the sheet has only some rows. */
  partOf?: string;
  /** The edition that these rows are of. */
  edition?: string;
  /** How a sheet is written, for the export. */
  form?: SheetForm;
  /** The names of a workbook's sheets, of which one is read. */
  sheets?: readonly string[];
  /** Can be read once: a large sheet is never kept in memory. */
  batches(): AsyncIterable<SourceBatch>;
}

/** Where a job has its rows from: the file of that name, or the files that these patterns match. */
export type RowsFrom = string | readonly string[];

export interface SheetForm {
  /** Of a CSV. */
  delimiter?: string;
  /** The header's cells as written, by column. */
  headers: ReadonlyMap<string, string>;
  /** The row of the header, as the sheet counts; 0 if there is none. */
  headerRow: number;
  /** The columns of a workbook that have only numbers or only dates. */
  types: ReadonlyMap<string, "number" | "date">;
}

export const noForm: SheetForm = { headers: new Map(), headerRow: 0, types: new Map() };

/** Some rows, problems with the shape of rows, and notes, which may come at the end of the file. */
export interface SourceBatch {
  rows: SourceRow[];
  problems: Problem[];
  notes?: string[];
}

export interface SourceRow {
  number: number;
  file: string;
  cells: Cells;
  /** The place of the row and of its cells, for formats that have it. */
  mark?: Mark;
  marks?: Record<string, Mark>;
  /** Cells of a workbook that have no value here although the sheet shows one, by column. */
  lost?: Readonly<Record<string, LostCell>>;
  /** What the row looks like, if not like one to make. */
  aside?: Aside;
  /** Its cells do not fit the header. Only of rows that look like something else. */
  misfit?: Problem;
}

/** What people write between the rows of a sheet: the heading of a section, the header once more, or a total. */
export type Aside = NonNullable<Problem["aside"]>;

export interface LostCell {
  /** A formula error, a formula that was saved without its result, or a merged cell that is not the first. */
  kind: "error" | "unsaved" | "merged";
  /** The error, or the range of the merged cells. */
  text: string;
}

/** Cells that are not empty, by column; params under `params.KEY`. */
export type Cells = Record<string, string>;

/** Cells of a job, with the place of each. */
export interface Written {
  cells: Cells;
  marks: Record<string, Mark>;
}

export interface SourceJob {
  name?: string;
  publish?: JobPublish;
  after?: JobAfter;
  /** Cells that a row takes when its own are empty. */
  defaults: Written;
  /** Variables for templates, the same for all rows. */
  vars: Written;
  axes: Axis[];
  /** Each row makes an item for each step; without steps, one. */
  steps: SourceStep[];
  /** A person has to approve every item. */
  approve: boolean;
  /** What is made is left out where this says no. */
  when?: Condition;
  /** Look-up tables for templates, by name. */
  tables: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** A text, mostly a template, that says no by being empty, `false`, `no` or `0`. */
export interface Condition {
  text: string;
  mark: Mark | undefined;
}

/** One axis along which every row varies: a key of the matrix, or all keys of the zip together. */
export interface Axis {
  keys: string[];
  settings: SourceSetting[];
}

export interface SourceSetting extends Written {
  /** Its part of the item's name, such as `16x9`. */
  label: string;
  when: readonly Condition[];
}

export interface SourceStep extends Written {
  name: string;
  axes: Axis[];
  /** A person has to approve its items. */
  approve: boolean;
  when?: Condition;
}

export const noWritten: Written = { cells: {}, marks: {} };

/** A source that could not be read. */
export function unreadSource(problem: Problem): Source {
  return { columns: [], problems: [problem], notes: [], batches: async function* () {} };
}

const batchRows = 1_000;

/** Rows in memory, such as those of a document. */
export function rowsInMemory({ rows, problems, notes = [] }: SourceBatch): Source["batches"] {
  return async function* () {
    yield { rows: [], problems, notes };
    for (let from = 0; from < rows.length; from += batchRows)
      yield { rows: rows.slice(from, from + batchRows), problems: [] };
  };
}

/** Whether a text contains a template; other texts are never changed. */
export function isTemplate(text: string): boolean {
  // Fast path: most texts have no brace.
  return text.includes("{") && (text.includes("{{") || text.includes("{%"));
}
