/**
 * Text in a CSV cell that a spreadsheet would run as a formula gets an apostrophe before it, which is how spreadsheets
 * themselves mark text (P24). The mark is taken off again when such a file is read as a manifest, so that a prompt is
 * the same prompt after the journey. Numbers are numbers, signs and all.
 */
const dangerous = /^'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;
const marked = /^''*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;
const number = /^[+-]?\d+(?:[.,]\d+)?$/;

export function spreadsheetText(text: string): string {
  return dangerous.test(text) && !number.test(text) ? `'${text}` : text;
}

/** What `spreadsheetText` was given. */
export function fromSpreadsheetText(text: string): string {
  return marked.test(text) ? text.slice(1) : text;
}
