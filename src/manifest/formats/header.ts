import { columnName, isKnown } from "../shape/columns.js";

/** The row of a header, counted from 1. */
export interface HeaderRow {
  row: number;
  /** The first row is read as the header, but this one looks more like it. */
  likely?: { row: number; names: readonly string[] };
}

/** The rows in which a header is looked for below titles. */
export const titleRowsMax = 30;

/**
 * Finds the header: the first row that is neither blank nor a comment, unless it is a title. It is one if it has no known
 * name and a row below it looks like a header: that row has two known names, or one and either no other cells or more
 * cells than any row above it.
 */
export function headerOf(records: readonly (readonly string[])[]): HeaderRow {
  const filledRows = records.slice(0, titleRowsMax).flatMap((record, index) => {
    if (isBlank(record) || isComment(record, Number.POSITIVE_INFINITY)) return [];
    const names = record.filter((cell) => !isEmpty(cell)).map(columnName);
    return { row: index + 1, width: record.length, names, known: names.filter(isKnown) };
  });
  const [first, ...others] = filledRows;
  if (first === undefined) return { row: 1 };
  if (first.known.length > 0) return first;
  let widest = first;
  const possible: typeof others = [];
  for (const each of others) {
    const { names, known } = each;
    const alone = known.length === names.length || names.length > widest.names.length;
    if (known.length > 1 || (known.length === 1 && alone)) possible.push(each);
    if (names.length > widest.names.length) widest = each;
  }
  const isMade = ({ known }: typeof first) => known.includes("model") || known.includes("prompt");
  const most = Math.max(...possible.map(({ known }) => known.length));
  const found = possible.find(isMade) ?? possible.find(({ known }) => known.length === most);
  if (found) return { row: found.row };
  // A spreadsheet saves a title with empty cells beside it, up to the width of the sheet.
  const isNarrow = widest.names.length > 2 && first.names.length * 2 <= widest.names.length;
  const isTitle = isNarrow && first.width >= widest.width;
  return isTitle ? { row: first.row, likely: widest } : { row: first.row };
}

export function isBlank(record: readonly string[]): boolean {
  return record.every(isEmpty);
}

/** A fast path: nearly every non-empty cell begins with a letter or a digit. */
export function isEmpty(cell: string): boolean {
  return cell === "" || (!(cell.charCodeAt(0) > 32 && cell.charCodeAt(0) < 127) && cell.trim() === "");
}

/**
 * A comment begins with `#` and has the row to itself. If commas split it into cells, it is recognised by `# ` and by not
 * fitting under the header. In a sheet of one column only `# ` begins a comment: `#sunset` is a prompt. A header may
 * begin with a column `#` that numbers the rows.
 */
export function isComment(record: readonly string[], columns: number): boolean {
  const first = record[0]?.trimStart() ?? "";
  if (!first.startsWith("#")) return false;
  const spaced = /^#(\s|#|$)/.test(first);
  if (isBlank(record.slice(1)) && columns > 1) return true;
  if (columns === Number.POSITIVE_INFINITY && first.trim() === "#") return false;
  return spaced && (columns === 1 ? record.length === 1 : record.length !== columns);
}
