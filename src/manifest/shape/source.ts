import type { Problem } from "../../core/problem.js";
import type { Mark } from "./manifest.js";

/** What every format is read into: cells by column, before anything is known of their meaning. */
export interface Source {
  /** All that rows may have, known before the first row is read. */
  columns: string[];
  /** Of the file as a whole, and of its beginning. */
  problems: Problem[];
  notes: string[];
  /** What a job says besides its rows. */
  job?: SourceJob;
  /** To be read once: a large sheet is never held. */
  batches(): AsyncIterable<SourceBatch>;
}

/** Some rows, what is wrong with the shape of rows among them, and notes that the end of a file may bring. */
export interface SourceBatch {
  rows: SourceRow[];
  problems: Problem[];
  notes?: string[];
}

export interface SourceRow {
  number: number;
  file: string;
  cells: Cells;
  /** The row's own place, and its cells', where the format tells. */
  mark?: Mark;
  marks?: Record<string, Mark>;
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
  /** Cells that a row takes when its own are empty. */
  defaults: Written;
  /** Variables of the templates, the same for all rows. */
  vars: Written;
  axes: Axis[];
  /** Each row gives an item for each of them; without steps it gives one. */
  steps: SourceStep[];
}

/** One way in which every row varies: a key of the matrix, or all keys of the zip together. */
export interface Axis {
  keys: string[];
  settings: SourceSetting[];
}

export interface SourceSetting extends Written {
  /** Its part of the item's name, such as `16x9`. */
  label: string;
}

export interface SourceStep extends Written {
  name: string;
  axes: Axis[];
}

export const noWritten: Written = { cells: {}, marks: {} };

/** A source of which nothing could be read. */
export function unreadSource(problem: Problem): Source {
  return { columns: [], problems: [problem], notes: [], batches: async function* () {} };
}

const batchRows = 1_000;

/** Rows that were read at once, such as those of a document. */
export function heldRows({ rows, problems, notes = [] }: SourceBatch): Source["batches"] {
  return async function* () {
    yield { rows: [], problems, notes };
    for (let from = 0; from < rows.length; from += batchRows)
      yield { rows: rows.slice(from, from + batchRows), problems: [] };
  };
}
