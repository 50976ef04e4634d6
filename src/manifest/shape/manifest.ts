import type { MediaField } from "../../api/inputs.js";
import type { Place, Problem } from "../../core/problem.js";
import type { Repair } from "./repairs.js";

/** A manifest of which the beginning was read. Models are not looked at here. */
export interface Manifest {
  /** The job's name: the field `name`, else the file's name without its extension. */
  name: string;
  /** The path as it was given. */
  file: string;
  /** All columns in the order of the file, known ones under their known name. */
  columns: string[];
  /** Its rows and everything that is wrong with the file itself, a part at a time. To be read once. */
  parts(): AsyncGenerator<Part, End>;
}

/** Some rows, one for each item to make before copies, and the problems that were found meanwhile. */
export interface Part {
  rows: Row[];
  problems: Problem[];
}

/** What is known of a manifest once all of it was read. */
export interface End {
  /** Oddities that stop nothing, one line each. */
  notes: string[];
  /** Columns that nothing uses: they are kept for the export. */
  unusedColumns: string[];
  /** Why nothing can be made of any row, where that shows only at the end. */
  refusal: Problem | null;
}

export interface Row {
  /** As a spreadsheet counts: the header is row 1. In JSON the first row is 1. */
  number: number;
  place: Place;
  id: string | null;
  /** What a combination of the job's axes and steps adds to names, such as `de-16x9`; empty without one. */
  label: string;
  /** The empty text when neither the row nor a default names one. */
  model: string;
  prompt: string | null;
  /** Rows that say the same may share one. */
  params: Readonly<Record<string, string>>;
  /** The params that came from defaults and not from the row: a model that does not take them goes without. */
  defaultParams: string[];
  inputs: Partial<Record<MediaField, string>>;
  /** Wanted name of the output file. */
  output: string | null;
  /** The same, where it depends on more than the manifest: the name, or why it cannot be made. */
  lateName: ((late: { category: string; key: string }) => string | Problem) | null;
  repeat: number;
  /** Higher goes first; 0 when nothing is said. */
  priority: number;
  /** Values that were taken for what they were before a spreadsheet changed them. */
  repairs: Repair[];
  /** Every cell of the row as written, and what its combination adds, by column. */
  columns: Record<string, string>;
  /** Where each cell lies in the file, where the format tells (JSON, YAML) or another file says it. */
  marks: Record<string, Mark>;
}

export interface Mark {
  /** The file, where it is not the row's own. */
  file?: string;
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
