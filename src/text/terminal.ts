import { pathToFileURL } from "node:url";
import { stripVTControlCharacters } from "node:util";
import stringWidth from "fast-string-width";

/**
 * Text from the service or a manifest may contain sequences that move the cursor, change the window title or reverse the
 * reading direction, and so falsify a line. The result is one line without control and format characters, except the
 * joiners that some scripts and emoji need, and with no more marks on a letter than scripts have.
 */
export function terminalText(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/[\t\n\v\f\r\u0085\p{Zl}\p{Zp}]+/gu, " ")
    .replace(/(?![\u200c\u200d])[\p{Cc}\p{Cf}]/gu, "")
    .replace(/\p{Cs}/gu, "\ufffd")
    .replace(/([\u200c\u200d])[\u200c\u200d]+/g, "$1")
    .replace(/(\p{M}{8})\p{M}+/gu, "$1")
    .trim();
}

/** Cleans text of several lines as `terminalText` does, and keeps the lines and their indentation. */
export function terminalLines(text: string): string {
  return text
    .split("\n")
    .map((line) => (/^ */.exec(line)?.[0] ?? "") + terminalText(line))
    .join("\n");
}

/** One clean line (`terminalText`), cut to that many characters. */
export function shortText(text: string, charactersMax: number): string {
  return cutText(terminalText(text), charactersMax);
}

/** The text, or its beginning and an ellipsis: that many characters as people count them, so no emoji is cut in half. */
export function cutText(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : cut(text, charactersMax, () => 1);
}

/** Columns that a text takes on a terminal: an emoji and a letter of Chinese, Japanese or Korean take two. */
export function textWidth(text: string): number {
  return stringWidth(text);
}

/** The text, or as much of its beginning as fits into that many columns with an ellipsis. */
export function cutToWidth(text: string, columns: number): string {
  return cut(text, columns, textWidth);
}

/** The text, or as much of its end as fits: the end of a path says more than its beginning. */
export function cutStartToWidth(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  const characters = charactersOf(text);
  let size = 1;
  let end = "";
  for (const character of characters.toReversed()) {
    size += sizeOf(character, columns, textWidth);
    if (size > columns) break;
    end = character + end;
  }
  return columns < 1 ? "" : `…${end}`;
}

/** The characters of a text as people count them. */
export function charactersOf(text: string): string[] {
  segmenter ??= new Intl.Segmenter();
  return [...segmenter.segment(text)].map(({ segment }) => segment);
}

/** The text as a link to a file, for terminals that take links (OSC 8). What is in a bucket is no file to open. */
export function fileLink(text: string, path: string): string {
  if (path.startsWith("s3://")) return text;
  return `\u001b]8;;${pathToFileURL(path).href}\u001b\\${text}\u001b]8;;\u001b\\`;
}

let segmenter: Intl.Segmenter | undefined;

/** The longest that one character may be (code units). A longer one is many joined, which terminals show side by side. */
const characterMax = 48;

function sizeOf(character: string, most: number, measured: (character: string) => number): number {
  return character.length > characterMax ? most + 1 : measured(character);
}

function cut(text: string, most: number, measured: (character: string) => number): string {
  segmenter ??= new Intl.Segmenter();
  let size = 0;
  let end = 0;
  for (const { index, segment } of segmenter.segment(text)) {
    // Up to here there is room for the ellipsis.
    if (size < most) end = index;
    size += sizeOf(segment, most, measured);
    if (size > most) return most < 1 ? "" : `${text.slice(0, end)}…`;
  }
  return text;
}

/**
 * JSON that may be shown on a terminal: what JSON itself leaves as it is of control and format characters is escaped too.
 * It is read back the same.
 */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    character === "\n" ? character : escaped(character),
  );
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
