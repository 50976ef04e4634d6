/** A problem of a manifest: where, what was expected, what was found. */
export interface Problem {
  place: Place;
  /** One line without a place, such as `unknown model "fluxx"`. */
  message: string;
  expected: string;
  got: string;
  /** The nearest valid value, if any. */
  nearest?: string;
  /** The value before a spreadsheet changed it: used instead if repairs are requested. */
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
  /** If a row makes several items, the values of this one, e.g. `lang=de`. */
  combination?: string;
}

/** Problems as shown: the first hundred, with similar ones grouped. */
export interface Digest {
  told: readonly { problem: Problem; times: number }[];
  count: number;
  /** Those that a repair would fix. */
  repairs: number;
}

const toldMax = 100;

/**
 * Collects problems, however many there are. A problem is listed once: a wrong matrix value occurs in every row, and a
 * wrong cell in every combination of its row.
 */
export function digestOf(problems: Iterable<Problem>): Digest {
  const groups = new Map<string, { problem: Problem; times: number }>();
  let count = 0;
  let repairs = 0;
  for (const problem of problems) {
    count++;
    if (problem.repair !== undefined) repairs++;
    const key = sameness(problem);
    const group = groups.get(key);
    if (group) group.times++;
    else if (groups.size < toldMax) groups.set(key, { problem, times: 1 });
  }
  return { told: [...groups.values()], count, repairs };
}

function sameness({
  place: { file, row, line, lineColumn, column },
  message,
  expected,
  got,
}: Problem): string {
  const where = line === undefined ? [row] : [line, lineColumn];
  return JSON.stringify([file, where, column, message, expected, got]);
}

/** The subject of a problem: a whole row, or one of its combinations. */
export function partOf({ row, combination = "" }: Pick<Place, "row" | "combination">): string {
  return `${row} ${combination}`;
}
