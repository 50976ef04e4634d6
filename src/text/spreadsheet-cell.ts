/**
 * CSV text that a spreadsheet would run as a formula gets an apostrophe before it, the spreadsheets' own mark for text (P24).
 * Reading the file as a manifest removes the mark, so that prompts survive a round trip. Signed numbers are not marked.
 */
const dangerous = /^'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;
const marked = /^''*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;
const number = /^[+-]?\d+(?:[.,]\d+)?$/;

export function spreadsheetText(text: string): string {
  return dangerous.test(text) && !number.test(text) ? `'${text}` : text;
}

/** Reverses `spreadsheetText`. */
export function fromSpreadsheetText(text: string): string {
  return marked.test(text) ? text.slice(1) : text;
}
