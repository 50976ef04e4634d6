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
  /** What the row looks like, if not like one to make: `--skip-headings` leaves it out. */
  aside?: "heading" | "total";
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
  reported: readonly ProblemGroup[];
  count: number;
  /** Those that a repair would fix. */
  repairs: number;
}

/** A mistake that one or more rows have. */
export interface ProblemGroup {
  /** The first of them. */
  problem: Problem;
  times: number;
  /** The first rows that have it, and how many there are; none if the whole file is meant. */
  rows: { first: number[]; count: number };
  /** The rows have different values, as in a column that has the wrong form. */
  valuesDiffer: boolean;
  /** Of rows that look like headings or totals, the totals; the others are headings. */
  totals: { first: number[]; count: number };
}

const groupsMax = 100;
const rowsMax = 4;
const asidesMax = 10;

/**
 * Collects problems, however many there are. One mistake is listed once: a wrong column is wrong in every row, and a wrong
 * cell in every combination of its row.
 */
export function digestOf(problems: Iterable<Problem>): Digest {
  const groups = new Map<string, { group: ProblemGroup; last: number | null }>();
  let count = 0;
  let repairs = 0;
  for (const problem of problems) {
    count++;
    if (problem.repair !== undefined) repairs++;
    const { row } = problem.place;
    const key = sameness(problem);
    let found = groups.get(key);
    if (!found && groups.size >= groupsMax) continue;
    if (!found) {
      const none = () => ({ first: [], count: 0 });
      found = {
        group: { problem, times: 0, rows: none(), valuesDiffer: false, totals: none() },
        last: null,
      };
      groups.set(key, found);
    }
    const { group } = found;
    group.times++;
    group.valuesDiffer ||= group.problem.got !== problem.got;
    if (row === null || row === found.last) continue;
    found.last = row;
    const rows = problem.aside === "total" ? group.totals : group.rows;
    rows.count++;
    if (rows.first.length < (problem.aside === undefined ? rowsMax : asidesMax)) rows.first.push(row);
  }
  return { reported: [...groups.values()].map(({ group }) => group), count, repairs };
}

function sameness({ place, message, expected, got, nearest, aside }: Problem): string {
  if (aside !== undefined) return JSON.stringify(["aside", place.file]);
  const { file, row, line, lineColumn, column } = place;
  // Without a row, the line is the place.
  const where = row === null ? [line, lineColumn, got] : [];
  return JSON.stringify([file, column, message, expected, nearest, ...where]);
}

/** The subject of a problem: a whole row, or one of its combinations. */
export function partOf({ row, combination = "" }: Pick<Place, "row" | "combination">): string {
  return `${row} ${combination}`;
}

/** Some row numbers: the first, and how many there are. */
export function numbersOf(rows: readonly number[]): ProblemGroup["rows"] {
  return { first: rows.slice(0, asidesMax), count: rows.length };
}

/** Such as `rows 5, 15 and 23 look like headings, and row 56 like a total`. */
export function asideWords(headings: ProblemGroup["rows"], totals: ProblemGroup["rows"]): string {
  const one = (rows: ProblemGroup["rows"]) => rows.count === 1;
  const look = one(headings.count > 0 ? headings : totals) ? "looks" : "look";
  const [heading, total] = [one(headings) ? "a heading" : "headings", one(totals) ? "a total" : "totals"];
  if (headings.count === 0) return `${rowsText(totals)} ${look} like ${total}`;
  const rest = totals.count === 0 ? "" : `, and ${rowsText(totals)} like ${total}`;
  return `${rowsText(headings)} ${look} like ${heading}${rest}`;
}

export function rowsText({ first, count }: ProblemGroup["rows"]): string {
  if (count === 1) return `row ${first[0]}`;
  if (count <= first.length) return `rows ${first.slice(0, -1).join(", ")} and ${first.at(-1)}`;
  const shown = first.slice(0, -1);
  return `rows ${shown.join(", ")} and ${count - shown.length} more`;
}
