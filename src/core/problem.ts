/** Something wrong with a manifest, told in full: where, what was expected, what was found. */
export interface Problem {
  place: Place;
  /** One line without a place, such as `unknown model "fluxx"`. */
  message: string;
  expected: string;
  got: string;
  /** The nearest valid value, where there is one. */
  nearest?: string;
  /** What the value was before a spreadsheet changed it: taken in its place when repairs are asked for. */
  repair?: string;
}

export interface Place {
  file: string;
  /** Row as a spreadsheet counts: the header is row 1. Null when the whole file is meant. */
  row: number | null;
  /** Line and column in the file, for JSON and YAML. */
  line?: number;
  lineColumn?: number;
  /** The column's name, or the field's path. */
  column?: string;
  /** The row's id, where it has one. */
  id?: string;
  /** Of a row that a job makes several items of, the values that belong to this one, such as `lang=de`. */
  combination?: string;
}

/** What a problem is of: a whole row, or one of its combinations. */
export function partOf({ row, combination = "" }: Pick<Place, "row" | "combination">): string {
  return `${row} ${combination}`;
}
