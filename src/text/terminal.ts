import { stripVTControlCharacters } from "node:util";

/**
 * Text of the service or of a manifest may hold sequences that move the cursor, retitle the window or turn the
 * reading direction around, so that a line shows something else than it says. What a terminal gets is on one line,
 * without control and format characters; only the joiners stay that some scripts and emoji are written with.
 */
export function terminalText(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/[\t\n\v\f\r\u0085\p{Zl}\p{Zp}]+/gu, " ")
    .replace(/(?![\u200c\u200d])[\p{Cc}\p{Cf}]/gu, "")
    .replace(/\p{Cs}/gu, "\ufffd")
    .trim();
}

/** The same, cut to so many characters. */
export function shortText(text: string, charactersMax: number): string {
  const characters = [...terminalText(text)];
  return characters.length <= charactersMax
    ? characters.join("")
    : `${characters.slice(0, charactersMax - 1).join("")}…`;
}
