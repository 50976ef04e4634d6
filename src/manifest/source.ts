import type { Problem } from "../core/problem.js";
import type { Mark } from "./manifest.js";

/** What every format is read into: cells by column, before anything is known of their meaning. */
export interface Source {
  columns: string[];
  rows: SourceRow[];
  problems: Problem[];
  /** From a JSON job. */
  name?: string;
  /** Cells that a row takes when its own are empty. */
  defaults?: Cells;
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
