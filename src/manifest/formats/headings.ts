import { columnName } from "../shape/columns.js";
import type { Aside, LostCell } from "../shape/source.js";
import { isEmpty } from "./header.js";

const totalWords =
  /^(?:(?:grand |sub-?|zwischen|gesamt)?(?:total(?:s|e|en|aux)?|summen?)|gesamt|insgesamt|sum|somme|suma|totaal|итого|всего|合计|合計|总计|小计)(?![\p{L}\p{N}])/iu;
const amount = /^[-+(]?\p{Sc}?\s?\d[\d.,' \u00a0]*\)?\s?(?:%|\p{Sc}|[A-Z]{3}|credits?)?$/u;

/**
 * What a row of a sheet looks like by its cells; undefined for a row like any other. Whether it could be made all the
 * same shows only with the defaults, so this alone leaves out nothing.
 */
export function asideIn(
  header: readonly string[],
  record: readonly string[],
  lost: Readonly<Record<string, LostCell>> = {},
  row = 0,
): Aside | undefined {
  // A row whose cells are separated in another way than those of the file.
  const [only = ""] = record;
  if (record.length === 1 && header.length > 1 && only.split(/[,;\t|]/).length >= header.length)
    return undefined;
  if (isHeaderAgain(header, record)) return "heading";
  let texts = 0;
  let amounts = 0;
  let textColumn = "";
  let written = "";
  for (let index = 0; index < record.length; index++) {
    const cell = record[index] as string;
    if (isEmpty(cell)) continue;
    const text = cell.trim();
    if (!beginsWithLetter(text) && amount.test(text)) {
      // Rows may be numbered before they are filled in.
      if (header[index] === "id") return undefined;
      amounts++;
      continue;
    }
    if (++texts > 1) return undefined;
    textColumn = header[index] ?? "";
    written = text;
  }
  const isTotal = texts > 0 && totalWords.test(written);
  if (isTotal || (texts === 0 && amounts > 0)) return "total";
  if (texts === 0 || amounts > 0) return undefined;
  const merged = Object.values(lost);
  const isAcross = merged.every(({ kind, text }) => kind === "merged" && topOf(text) === row);
  if (!isAcross) return undefined;
  // A prompt or the key of a model alone is a row whose other cells were forgotten.
  const isForgotten = textColumn === "prompt" || (textColumn === "model" && !/\s/.test(written));
  const isHeading = textColumn !== "" && (!isForgotten || merged.length > 0);
  return isHeading ? "heading" : undefined;
}

/** Most cells do, and are no amounts: the pattern of those is not asked. */
function beginsWithLetter(text: string): boolean {
  const code = text.charCodeAt(0) | 0x20;
  return code >= 0x61 && code <= 0x7a;
}

/** Both begin and end with the same letters, in whichever case: what differs there need not be made the name of a column. */
function endsLike(cell: string, name: string): boolean {
  const ends = (text: string) => `${text.charAt(0)}${text.charAt(text.length - 1)}`.toLowerCase();
  return ends(cell) === ends(name);
}

function isHeaderAgain(header: readonly string[], record: readonly string[]): boolean {
  const first = record.findIndex((cell) => !isEmpty(cell));
  const [cell, name] = [record[first] ?? "", header[first] ?? ""];
  if (first < 0 || !endsLike(cell.trim(), name) || columnName(cell) !== name) return false;
  const cells = header.filter((name, index) => name !== "" && !isEmpty(record[index] ?? ""));
  const isSame = record.every((cell, index) => isEmpty(cell) || columnName(cell) === header[index]);
  return isSame && cells.length > 1 && cells.includes("model");
}

function topOf(range: string): number {
  return Number(/^[A-Z]+(\d+)/.exec(range)?.[1]);
}
