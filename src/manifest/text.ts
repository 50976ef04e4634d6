import { isUtf8 } from "node:buffer";
import type { Problem } from "../core/problem.js";

const readable = "UTF-8, UTF-16 or Windows-1252 text";

export type Text = { text: string; notes: string[] } | { problem: Problem };

/**
 * The text of a manifest, without a byte order mark, or the one reason why there is none. Spreadsheets save UTF-8 with
 * or without a mark, UTF-16 ("Unicode text"), and Windows-1252 where nobody chose. The last one cannot be told from
 * its neighbours by its bytes, so a note says that it was taken for that.
 */
export function decodedText(file: string, bytes: Uint8Array): Text {
  const fail = (message: string, expected: string, got: string, line?: number) => ({
    problem: {
      place: { file, row: null, ...(line === undefined ? {} : { line, lineColumn: 1 }) },
      message,
      expected,
      got,
    },
  });
  if (bytes.length === 0) return fail("the file is empty", "a header and rows", "0 bytes");
  const foreign = foreignKind(bytes);
  if (foreign) return fail("the file is not text", readable, foreign);
  const encoding = encodingOf(bytes);
  const decoded = new TextDecoder(encoding).decode(bytes);
  const text =
    encoding === "windows-1252"
      ? decoded.replace(c1, (one) => windows[one.charCodeAt(0) - 0x80] ?? one)
      : decoded;
  const odd = text.search(encoding === "windows-1252" ? oddIn1252 : /\0/);
  if (odd >= 0 && encoding === "windows-1252") {
    return fail(
      "the file is text of no encoding that is known",
      readable,
      byteAt(text, odd),
      lineOf(text, odd),
    );
  }
  if (odd >= 0) return fail("the file has NUL bytes", readable, "a NUL byte", lineOf(text, odd));
  if (text.trim() === "") return fail("the file is empty", "a header and rows", "blank lines only");
  return { text, notes: encoding === "windows-1252" ? [note1252(text)] : [] };
}

type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";

function encodingOf(bytes: Uint8Array): Encoding {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  const unmarked = unmarkedUtf16(bytes.subarray(0, 1_000));
  if (unmarked) return unmarked;
  return isUtf8(bytes) ? "utf-8" : "windows-1252";
}

/** Without a mark UTF-16 shows by its NUL bytes: a header has Latin letters, so nearly every other byte is one. */
function unmarkedUtf16(start: Uint8Array): Encoding | null {
  const nuls = [0, 0];
  for (const [index, byte] of start.entries()) if (byte === 0) nuls[index % 2] = (nuls[index % 2] ?? 0) + 1;
  const [even = 0, odd = 0] = nuls;
  const many = start.length * 0.35;
  if (odd > many && even === 0) return "utf-16le";
  return even > many && odd === 0 ? "utf-16be" : null;
}

/** Control characters, and the five bytes that Windows-1252 leaves without a meaning. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that text does not have.
const oddIn1252 = /[\0-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d]/;

const accented = /[^\0-\u007f]/;

/** Node decodes these bytes as Latin-1 has them, as control characters; Windows puts letters and quotes there. */
const windows = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ";
const c1 = /[\x80-\x9f]/g;

function note1252(text: string): string {
  const at = text.search(accented);
  const word = text
    .slice(Math.max(0, at - 20), at + 20)
    .split(/[\s,;"]+/)
    .find((each) => accented.test(each));
  return `the file is not UTF-8; it was read as Windows-1252 (so "${word}" in line ${lineOf(text, at)}): look whether that is right, or save it as "CSV UTF-8"`;
}

function byteAt(text: string, index: number): string {
  return `a byte 0x${text.charCodeAt(index).toString(16).padStart(2, "0")}, which is no letter`;
}

/** What the file is, when its first bytes tell that it is no text at all. */
function foreignKind(bytes: Uint8Array): string | null {
  const start = Buffer.from(bytes.subarray(0, 8)).toString("latin1");
  if (start.startsWith("\xd0\xcf\x11\xe0")) return "an old workbook (.xls); save it as .xlsx or CSV";
  if (start.startsWith("%PDF")) return "a PDF";
  if (/^(\x89PNG|\xff\xd8\xff|GIF8|RIFF)/.test(start)) return "a picture or sound";
  return start.startsWith("\x1f\x8b") ? "a gzip file; unpack it first" : null;
}

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}
