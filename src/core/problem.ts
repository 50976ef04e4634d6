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
  /** The row's id, if it has one. */
  id?: string;
  /** If a row makes several items, the values of this one, e.g. `lang=de`. */
  combination?: string;
}

/** Problems as shown: the first hundred kinds, in the order of the sheet. */
export interface Digest {
  told: readonly ProblemGroup[];
  count: number;
  /** Those that a repair would fix. */
  repairs: number;
}

/** The same mistake in one or more rows. */
export interface ProblemGroup {
  /** The first of them. */
  problem: Problem;
  times: number;
  /** The first rows that have it, and how many there are; none if the whole file is meant. */
  rows: { first: number[]; count: number };
  /** The rows have different values, as in a column that has the wrong form. */
  valuesDiffer: boolean;
}

const toldMax = 100;
const rowsMax = 4;

/**
 * Collects problems, however many there are. One mistake is listed once: a wrong column is wrong in every row, and a wrong
 * cell in every combination of its row.
 */
export function digestOf(problems: Iterable<Problem>): Digest {
  const groups = new Map<string, ProblemGroup & { last: number | null }>();
  let count = 0;
  let repairs = 0;
  for (const problem of problems) {
    count++;
    if (problem.repair !== undefined) repairs++;
    const { row } = problem.place;
    const key = sameness(problem);
    let group = groups.get(key);
    if (!group && groups.size >= toldMax) continue;
    if (!group) {
      group = { problem, times: 0, rows: { first: [], count: 0 }, valuesDiffer: false, last: null };
      groups.set(key, group);
    }
    group.times++;
    group.valuesDiffer ||= group.problem.got !== problem.got;
    if (row === null || row === group.last) continue;
    group.last = row;
    group.rows.count++;
    if (group.rows.first.length < rowsMax) group.rows.first.push(row);
  }
  return { told: [...groups.values()], count, repairs };
}

function sameness({ place, message, expected, got, nearest }: Problem): string {
  const { file, row, line, lineColumn, column } = place;
  // Without a row, the line is the place.
  const where = row === null ? [line, lineColumn, got] : [];
  return JSON.stringify([file, column, message, expected, nearest, ...where]);
}

/** The subject of a problem: a whole row, or one of its combinations. */
export function partOf({ row, combination = "" }: Pick<Place, "row" | "combination">): string {
  return `${row} ${combination}`;
}
