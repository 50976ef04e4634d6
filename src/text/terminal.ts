import { stripVTControlCharacters } from "node:util";

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

let segmenter: Intl.Segmenter | undefined;

/** The text, or its beginning and an ellipsis: that many characters as people count them, so no emoji is cut in half. */
export function cutText(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  segmenter ??= new Intl.Segmenter();
  let number = 0;
  let end = 0;
  for (const { index } of segmenter.segment(text)) {
    number++;
    if (number === charactersMax) end = index;
    if (number > charactersMax) return `${text.slice(0, end)}…`;
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
