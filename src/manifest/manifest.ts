import type { MediaField } from "../api/inputs.js";
import type { Place, Problem } from "../core/problem.js";

/** A manifest as read: its rows, and everything that is wrong with the file itself. Models are not looked at here. */
export interface Manifest {
  /** The job's name: the field `name`, else the file's name without its extension. */
  name: string;
  /** The path as it was given. */
  file: string;
  rows: Row[];
  /** Sorted by row; what concerns the whole file comes first. */
  problems: Problem[];
  /** Oddities that stop nothing, one line each. */
  notes: string[];
  /** All columns in the order of the file, known ones under their known name. */
  columns: string[];
  /** Those that nothing uses: they are kept for the export. */
  unusedColumns: string[];
}

export interface Row {
  /** As a spreadsheet counts: the header is row 1. In JSON the first row is 1. */
  number: number;
  place: Place;
  id: string | null;
  /** The empty text when neither the row nor a default names one. */
  model: string;
  prompt: string | null;
  params: Record<string, string>;
  /** The params that came from defaults and not from the row. */
  defaultParams: string[];
  inputs: Partial<Record<MediaField, string>>;
  /** Wanted name of the output file. */
  output: string | null;
  repeat: number;
  /** Higher goes first; 0 when nothing is said. */
  priority: number;
  /** Every cell of the row as written, by column. */
  columns: Record<string, string>;
  /** Where each cell lies in the file, where the format tells (JSON). */
  marks: Record<string, Mark>;
}

export interface Mark {
  line: number;
  lineColumn: number;
}

/** What rows take when they say nothing themselves. */
export interface Defaults {
  model?: string;
  prompt?: string;
  params?: Record<string, string>;
}

/** The place of one cell of a row. */
export function cellPlace(row: Row, column: string): Place {
  return { ...row.place, column, ...row.marks[column] };
}
