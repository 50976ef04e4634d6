import type { MediaField } from "../../api/inputs.js";
import type { Place, Problem } from "../../core/problem.js";
import type { Repair } from "./repairs.js";

/** An opened manifest, whose beginning was read. Models are checked elsewhere. */
export interface Manifest {
  /** The job's name: the field `name`, else the file's name without its extension. */
  name: string;
  /** It has only some rows of the job: the job's other items stay as they are. */
  isPart: boolean;
  /** The edition that a manifest of failed rows is of; absent for the first one. */
  edition?: string;
  /** The path as it was given. */
  file: string;
  /** All columns in the order of the file, known ones under their known name. */
  columns: string[];
  /** Where its local inputs are published, if it says so. */
  publish?: JobPublish;
  /** The commands that it wants to be run after its files, if there are any. */
  after?: JobAfter;
  /** The rows and the problems of the file, a part at a time. Can be read once. */
  parts(): AsyncGenerator<Part, End>;
}

/** Where a job file publishes local inputs. */
export interface JobPublish {
  /** A bucket or an address. */
  to: string;
  /** How long the addresses must stay valid (ms); null if the settings decide. */
  expiresMs: number | null;
  mark: Mark;
}

/** Commands of a job file for the shell. Nothing of them is run before this user has agreed to it. */
export interface JobAfter {
  /** After each archived file. */
  file?: string;
  /** Once everything is archived. */
  set?: string;
  /** How long one of them may take (ms). */
  timeoutMs?: number;
  /** Where each command stands. */
  marks: Readonly<Record<"file" | "set", Mark>>;
}

/** Some rows, one for each item before copies, and the problems found with them. */
export interface Part {
  rows: Row[];
  problems: Problem[];
}

/** What is known once the whole manifest was read. */
export interface End {
  /** Notes that stop nothing, one line each. */
  notes: string[];
  /** Columns that are not used: they are kept for the export. */
  unusedColumns: string[];
  /** Why no row can be made, if only the end of the file shows it. */
  refusal: Problem | null;
}

export interface Row {
  /** As a spreadsheet counts: the header is row 1. In JSON the first row is 1. */
  number: number;
  place: Place;
  id: string | null;
  /** The part of names from the job's axes and steps, such as `de-16x9`; empty without them. */
  label: string;
  /** The label without the step, which all steps of one chain have in common; null without steps. */
  chain: string | null;
  /** The name of its step; null without steps. */
  step: string | null;
  /** Empty when neither the row nor a default names a model. */
  model: string;
  prompt: string | null;
  /** Rows with equal params may share the object. */
  params: Readonly<Record<string, string>>;
  /** The params from defaults: they are left out for a model that does not take them. */
  defaultParams: string[];
  inputs: Partial<Record<MediaField, string>>;
  /** The wanted name of the output file. */
  output: string | null;
  /** Those of its copies, if a template names them apart; null if they get numbers. */
  copyOutputs: readonly string[] | null;
  /** Renders a name that depends on more than the manifest; returns a problem when it cannot. */
  lateName: ((late: LateValues) => string | Problem) | null;
  repeat: number;
  /** A person has to approve what is made of it. */
  approve: boolean;
  /** Higher is submitted first; 0 by default. */
  priority: number;
  /** Values that a spreadsheet had changed, and that were changed back. */
  repairs: Repair[];
  /** Every cell of the row as written, and the values of its combination, by column. */
  columns: Record<string, string>;
  /** The place of each cell, for formats that have it (JSON, YAML) and for values from other files. */
  marks: Record<string, Mark>;
}

/** What a template of a file's name may use, and only it. */
export interface LateValues {
  category: string;
  key: string;
  copy: number;
  /** What stands for the number of the take until there is one. */
  take: string;
}

export interface Mark {
  /** The file, if it is not the row's own. */
  file?: string;
  line: number;
  lineColumn: number;
}

/** Values for fields that a row leaves empty. */
export interface Defaults {
  model?: string;
  prompt?: string;
  params?: Record<string, string>;
}

/** The place of one cell of a row. */
export function cellPlace(row: Row, column: string): Place {
  return { ...row.place, column, ...row.marks[column] };
}
