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

/** Problems as they are told: those that are alike together, and the first hundred of them. */
export interface Digest {
  told: readonly { problem: Problem; times: number }[];
  count: number;
  /** Those whose value a repair would mend. */
  repairs: number;
}

const toldMax = 100;

/**
 * Gathers problems, however many there are. The same thing at the same place is told once: a wrong value of a job's
 * matrix is met by every row, and a wrong cell by every combination of its row.
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

/** What a problem is of: a whole row, or one of its combinations. */
export function partOf({ row, combination = "" }: Pick<Place, "row" | "combination">): string {
  return `${row} ${combination}`;
}
