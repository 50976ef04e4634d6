import { stripVTControlCharacters } from "node:util";
import stringWidth from "fast-string-width";

/**
 * Text from the service or a manifest may contain sequences that move the cursor, change the window title or reverse the
 * reading direction, and so falsify a line. The result is one line without control and format characters, except the
 * joiners that some scripts and emoji need.
 */
export function terminalText(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/[\t\n\v\f\r\u0085\p{Zl}\p{Zp}]+/gu, " ")
    .replace(/(?![\u200c\u200d])[\p{Cc}\p{Cf}]/gu, "")
    .replace(/\p{Cs}/gu, "\ufffd")
    .trim();
}

/** The same, cut to that many characters. */
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

let segmenter: Intl.Segmenter | undefined;

function cut(text: string, most: number, sizeOf: (character: string) => number): string {
  segmenter ??= new Intl.Segmenter();
  let size = 0;
  let end = 0;
  for (const { index, segment } of segmenter.segment(text)) {
    // Up to here there is room for the ellipsis.
    if (size < most) end = index;
    size += sizeOf(segment);
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
