import type { Problem } from "../../core/problem.js";
import type { LostCell } from "./source.js";

/**
 * Finds text that a spreadsheet or a wrong encoding destroyed, before it is paid for: characters that became question
 * marks, UTF-8 that was read as Windows-1252 or Mac Roman (`GrÃ¶ÃŸe`), errors of formulas (`#REF!`), and the hashes of a
 * narrow column, and the long numbers that it shortens; and text that a program destroyed: halves of characters, and what it
 * writes in place of a value that is missing (`undefined`). Good text must pass in every language, so what may be meant passes
 * as well: `What???`, `Quoi ???`, `“CAFÉ”`, `IRMÃ…`.
 */
export function damageIn(text: string): Omit<Problem, "place"> | null {
  if (leftBehind.test(text)) return noValue(text);
  if (!suspicious.test(text)) return null;
  for (const { find, message, expected } of damages) {
    const at = find(text);
    if (at >= 0) return { message, expected, got: around(text, at) };
  }
  return null;
}

/** The damage in a prompt. Unlike a param, a prompt that is only a word for a missing value, such as `nan`, is damaged. */
export function promptDamageIn(text: string): Omit<Problem, "place"> | null {
  return missingWord.test(text) ? noValue(text) : damageIn(text);
}

/** What JavaScript and Python write in place of a value. */
const leftBehind = /^\s*undefined\s*$|\[object [A-Z]\w*\]/;
const missingWord = /^\s*(?:nan|NaN|null|None|NaT|<NA>)\s*$/;

function noValue(text: string): Omit<Problem, "place"> {
  return {
    message: "the text is what a program writes where a value is missing",
    expected: `the value (correct the program that made the sheet), ${orAllow}`,
    got: around(text, 0),
  };
}

const formulaResult = "the result of the formula (correct it in the spreadsheet)";
const orAllow = "or --allow-damaged-text";
const saveAgain = `text as it was written (save the sheet as "CSV UTF-8" or .xlsx), ${orAllow}`;

const damages = [
  {
    find: (text: string) => text.indexOf("\ufffd"),
    message: "characters were lost: the text has replacement characters",
    expected: saveAgain,
  },
  {
    find: (text: string) => text.search(/\p{Surrogate}/u),
    message: "characters were lost: the text has half of a character, such as of an emoji that was cut",
    expected: `whole characters (correct the program that made the file), ${orAllow}`,
  },
  {
    find: lostAt,
    message: "characters were lost: the text has question marks in their place",
    expected: saveAgain,
  },
  {
    find: mixedUpAt,
    message: "the text was read in the wrong encoding",
    expected: saveAgain,
  },
  {
    find: (text: string) => text.search(formulaError),
    message: "the text has a formula error",
    expected: `${formulaResult}, ${orAllow}`,
  },
  {
    find: (text: string) => (/^\s*#{3,}\s*$/.test(text) ? 0 : -1),
    message: "the text is what a spreadsheet shows in place of a value where a column is too narrow",
    expected: `the value (widen the column in the spreadsheet and save the sheet again), ${orAllow}`,
  },
  {
    find: (text: string) => text.search(shortened),
    message: "a spreadsheet has shortened a long number",
    expected: `all of its digits (give the column the number format 0 in the spreadsheet and save the sheet again), ${orAllow}`,
  },
];

/** A fast path: most texts have nothing of the kind. */
const suspicious = /[\ud800-\udfff\ufffd#√‚]|\?\?|\dE\+|[Â-ôðâ][\u0080-\u00bfŒœŠšŸŽžƒˆ˜–—‘’‚“”„†‡•…‰‹›€™]/;

/** English, German and French, as Excel and LibreOffice save them. */
const formulaError =
  /(?<![\p{L}\p{N}#])#(?:REF!|NAME\?|(?:N\/A|NV)(?![\p{L}\p{N}])|VALUE!|DIV\/0!|NUM!|NULL!|SPILL!|CALC!|BEZUG!|WERT!|ZAHL!|ÜBERLAUF!|KALK!|VALEUR!|NOM\?|NOMBRE!|NUL!|PROPAGATION!)/u;

/** What a CSV has of a number of 12 to 21 digits, such as the number of an article: `4.00638E+12`. */
const shortened = /(?<![\p{L}\p{N}.,])\d(?:[.,]\d{1,5})?E\+(?:1[1-9]|20)(?![\p{L}\p{N}])/u;

/** What is wrong with a row that needs a cell without a value. */
export function lostCellProblem({ kind, text }: LostCell): Omit<Problem, "place"> {
  switch (kind) {
    case "error":
      return { message: "the cell has a formula error", expected: formulaResult, got: text };
    case "unsaved":
      return {
        message: "the cell has a formula that was saved without its result",
        expected: "the result (open the workbook in a spreadsheet program and save it there)",
        got: "no result",
      };
    default:
      return {
        message: "the cell is part of merged cells, and only the first of them has a value",
        expected: "a value in each cell (unmerge the cells and fill in the others)",
        got: `the merged cells ${text}`,
      };
  }
}

/**
 * Question marks for lost characters: three and more right before a letter (`Gr???e`), or words of nothing but question
 * marks, unless they can end a question (`Quoi ??? Non`).
 */
function lostAt(text: string): number {
  const inWord = text.search(/\?{3,}(?=[\p{L}\p{N}])/u);
  if (inWord >= 0) return inWord;
  const words = [...text.matchAll(/(?<![^\s("'„“«])\?{2,}(?![^\s,;:.)"'“”»])/gu)].filter(
    ({ 0: word, index }) =>
      !endsQuestion(text.slice(0, index), text.slice(index + word.length)) &&
      !(word.length < 4 && /["'„“«]$/.test(text.slice(0, index))),
  );
  const [first] = words;
  return first && (words.length > 1 || first[0].length > 2 || first[0] === text.trim()) ? first.index : -1;
}

function endsQuestion(before: string, after: string): boolean {
  return /[\p{L}\p{N})"”»]\s+$/u.test(before) && /^(?:[)"”»]|\s*$|\s+[\p{Lu}\p{Lt}"“„«¿(–—-])/u.test(after);
}

/** The characters of Windows-1252 for the bytes 0x80 to 0x9f; those that it does not have are control characters. */
const upper = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ";
/** All that a second byte of UTF-8 becomes, and those of them that may follow a letter with an accent in good text. */
const second = `[${upper}\\x80-\\xbf]`;
const mayFollow = /[\u00a0«»“”‘’…–—·°„‚‹›¿¡™®©•ºª²³´]/;
const pair = new RegExp(`[Â-Þ]${second}`, "gu");
const inRows = new RegExp(`^(?:[×ØÙ]${second}){2}`, "u");
const longer = new RegExp(`[à-ï]${second}{2}|[ð-ô]${second}{3}`, "gu");
/** UTF-8 that was read as Mac Roman: `Gr√∂√üe`, `‚Äû`. */
const macRoman = /√[∂üº§©ñ®±°¢´ß]|‚Ä[ûúôòìîÇ¶]/u;

/** Where UTF-8 was read as Windows-1252. */
function mixedUpAt(text: string): number {
  for (const { 0: found, index } of text.matchAll(pair)) if (isPair(text, found, index)) return index;
  for (const { 0: found, index } of text.matchAll(longer)) {
    const certain = [...found].slice(1).some((one) => !mayFollow.test(one)) || found.startsWith("â€");
    if (certain && isUtf8(found)) return index;
  }
  return text.search(macRoman);
}

function isPair(text: string, [first = "", then = ""]: string, at: number): boolean {
  const before = text.charAt(at - 1);
  const after = text.charAt(at + 2);
  // Times and diameter stand before fractions; as the first half of a letter they come in rows.
  if (first === "×" || first === "Ø") return inRows.test(text.slice(at));
  // In good text an accented capital may end a word before a quote, but none stands after a small letter.
  if (/\p{Ll}/u.test(before)) return true;
  if (first === "Â") return isAfterA(before, then);
  if (!mayFollow.test(then)) return true;
  return /[–—…„“]/.test(then) ? /\p{Ll}/u.test(after) : /\p{L}/u.test(after) && !/["“”«»]/.test(then);
}

/** UTF-8's own sign for what Latin-1 has above the letters: `20Â°`, `Â©`. */
function isAfterA(before: string, then: string): boolean {
  if (!/[\u00a0-\u00bf]/.test(then)) return false;
  return /[«»\u00a0]/.test(then) ? before === "" || /[\s\p{Ll}\p{N}]/u.test(before) : true;
}

function isUtf8(characters: string): boolean {
  const bytes = [...characters].map((one) => {
    const at = upper.indexOf(one);
    return at < 0 ? one.charCodeAt(0) : 0x80 + at;
  });
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes));
    return true;
  } catch {
    return false;
  }
}

const aroundCharacters = 30;

/** The text near the damage. */
function around(text: string, at: number): string {
  const from = Math.max(0, at - aroundCharacters);
  const end = Math.min(text.length, at + aroundCharacters);
  // A cut may go through an emoji.
  const whole = text.slice(from, end).replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
  return `${from > 0 ? "…" : ""}${whole}${end < text.length ? "…" : ""}`;
}
