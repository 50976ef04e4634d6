/**
 * CSV text that a spreadsheet would run as a formula gets an apostrophe before it, the spreadsheets' own mark for text (P24).
 * Reading the file as a manifest removes the mark, so that prompts survive a round trip. Signed numbers are not marked.
 */
const dangerous = /^'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;
const marked = /^''*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;
const number = /^[+-]?\d+(?:[.,]\d+)?$/;

/**
 * A spreadsheet may split the lines at another character than the one between our cells; quotes in the middle of what it takes
 * for a cell do not stop it. So what would begin a formula behind any separator gets a word joiner before it, which is
 * invisible. Text that people write has none there, unlike an apostrophe, so it can be removed again.
 */
const joiner = "\u2060";
const behindSeparator =
  /([,;\t\r\n]"*)(?=\u2060*[=+\-@\uff1d\uff0b\uff0d\uff20])(?![+-]\d+(?:[.,]\d+)?(?:[,;\t\r\n"]|$))/g;
const joined = /([,;\t\r\n]"*)\u2060(?=\u2060*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;

/** Which cells are quoted besides those that must be: those with a character that nobody sees. */
export const quotedCells = /[\p{Cc}\p{Cf}]/u;

export function spreadsheetText(text: string): string {
  const inner = text.replace(behindSeparator, `$1${joiner}`);
  return dangerous.test(inner) && !number.test(inner) ? `'${inner}` : inner;
}

/** Reverses `spreadsheetText`. */
export function fromSpreadsheetText(text: string): string {
  const plain = text.startsWith("'") && marked.test(text) ? text.slice(1) : text;
  return plain.includes(joiner) ? plain.replace(joined, "$1") : plain;
}
