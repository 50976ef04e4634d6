import { isUtf8 } from "node:buffer";
import type { Problem } from "../../core/problem.js";
import type { Bytes } from "./bytes.js";

/**
 * Which encoding a text has. Spreadsheets save UTF-8 with or without a byte order mark, UTF-16 ("Unicode text"), and by
 * default Windows-1252. Bytes cannot tell Windows-1252 from similar encodings, so a note says that it was assumed. A large
 * sheet is read in pieces; nearly all sheets are UTF-8, for which one pass is enough.
 */
export type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";

const readable = "UTF-8, UTF-16 or Windows-1252 text";
const startBytes = 1_000;

export type FoundEncoding = Encoded | { problem: Problem };

/** How to decode a text, after a pass over all of it. */
export interface Encoded {
  encoding: Encoding;
  /** It has carriage returns, or may have. */
  returns: boolean;
  notes: string[];
}

/** The first pass, over bytes: are they text, are they all UTF-8, do they contain NUL bytes? */
class FirstLook {
  private start: Uint8Array = new Uint8Array();
  private length = 0;
  private utf8 = true;
  private nul = false;
  private returns = false;
  private blank = true;
  /** The first bytes of a character that ends in the next piece. */
  private rest: Uint8Array = new Uint8Array();

  constructor(private readonly file: string) {}

  see(piece: Uint8Array): void {
    if (this.start.length < startBytes)
      this.start = Buffer.concat([this.start, piece.subarray(0, startBytes - this.start.length)]);
    this.length += piece.length;
    this.nul ||= piece.includes(0);
    this.returns ||= piece.includes(13);
    if (!this.utf8) return;
    const whole = this.rest.length === 0 ? piece : Buffer.concat([this.rest, piece]);
    const end = wholeCharacters(whole);
    const text = whole.subarray(0, end);
    this.rest = whole.slice(end);
    this.utf8 = isUtf8(text);
    if (this.blank && this.utf8) this.blank = new TextDecoder().decode(text).trim() === "";
  }

  /** The result, or the suspected encoding if a second pass has to check it. */
  finding(): FoundEncoding | { suspect: Encoding } {
    const fail = (message: string, expected: string, got: string) =>
      problemOf(this.file, message, expected, got);
    if (this.length === 0) return fail("the file is empty", "a header and rows", "0 bytes");
    const foreign = foreignKind(this.start);
    if (foreign) return fail("the file is not text", readable, foreign);
    const encoding = this.encoding();
    if (encoding !== "utf-8" || this.nul) return { suspect: encoding };
    if (this.blank) return fail("the file is empty", "a header and rows", "blank lines only");
    return { encoding, returns: this.returns, notes: [] };
  }

  private encoding(): Encoding {
    const [first, second] = this.start;
    if (first === 0xff && second === 0xfe) return "utf-16le";
    if (first === 0xfe && second === 0xff) return "utf-16be";
    const utf8 = this.utf8 && this.rest.length === 0;
    return unmarkedUtf16(this.start) ?? (utf8 ? "utf-8" : "windows-1252");
  }
}

/** The second pass, over decoded text: finds invalid characters and their lines. */
class SecondLook {
  private readonly decoder: TextDecoder;
  private line = 1;
  private blank = true;
  private odd: { line: number; character: string } | null = null;
  private accent: { line: number; word: string } | null = null;

  constructor(
    private readonly file: string,
    private readonly encoding: Encoding,
  ) {
    this.decoder = new TextDecoder(encoding);
  }

  see(piece: Uint8Array): void {
    if (this.odd) return;
    const text = asMeant(this.decoder.decode(piece, { stream: true }), this.encoding);
    if (this.blank) this.blank = text.trim() === "";
    const at = text.search(this.encoding === "windows-1252" ? oddIn1252 : /\0/);
    if (at >= 0) this.odd = { line: this.lineAt(text, at), character: text.charAt(at) };
    const accent = this.accent === null ? text.search(accented) : -1;
    if (accent >= 0) this.accent = { line: this.lineAt(text, accent), word: wordAt(text, accent) };
    this.line = this.lineAt(text, text.length);
  }

  finding(): FoundEncoding {
    const { file, encoding, odd, accent } = this;
    if (odd && encoding === "windows-1252") {
      const message = "the file is not in a known text encoding";
      return problemOf(file, message, readable, byteName(odd.character), odd.line);
    }
    if (odd) return problemOf(file, "the file has NUL bytes", readable, "a NUL byte", odd.line);
    if (this.blank) return problemOf(file, "the file is empty", "a header and rows", "blank lines only");
    const notes = encoding === "windows-1252" && accent ? [note1252(accent)] : [];
    return { encoding, returns: true, notes };
  }

  private lineAt(text: string, index: number): number {
    return this.line + text.slice(0, index).split("\n").length - 1;
  }
}

/** Node decodes these bytes as the control characters of Latin-1; in Windows-1252 they are letters and quotes. */
const windows = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ";
const c1 = /[\x80-\x9f]/g;

/** Decoded text with the characters of Windows-1252. */
function asMeant(text: string, encoding: Encoding): string {
  if (encoding !== "windows-1252") return text;
  return text.replace(c1, (one) => windows[one.charCodeAt(0) - 0x80] ?? one);
}

function problemOf(file: string, message: string, expected: string, got: string, line?: number) {
  const at = line === undefined ? {} : { line, lineColumn: 1 };
  return { problem: { place: { file, row: null, ...at }, message, expected, got } };
}

/** The length of a piece of UTF-8 without a character that is cut at its end. */
function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] as number;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** UTF-16 without a byte order mark: a header has Latin letters, so nearly every other byte is NUL. */
function unmarkedUtf16(start: Uint8Array): Encoding | null {
  const nuls = [0, 0];
  for (const [index, byte] of start.entries()) if (byte === 0) nuls[index % 2] = (nuls[index % 2] ?? 0) + 1;
  const [even = 0, odd = 0] = nuls;
  const many = start.length * 0.35;
  if (odd > many && even === 0) return "utf-16le";
  return even > many && odd === 0 ? "utf-16be" : null;
}

/** Control characters, and the five bytes that are undefined in Windows-1252. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that text does not have.
const oddIn1252 = /[\0-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d]/;

const accented = /[^\0-\u007f]/;

function wordAt(text: string, at: number): string {
  const around = text.slice(Math.max(0, at - 20), at + 20).split(/[\s,;"]+/);
  return around.find((each) => accented.test(each)) ?? "";
}

function note1252({ line, word }: { line: number; word: string }): string {
  return `the file is not UTF-8; it was read as Windows-1252 (so "${word}" in line ${line}): check that, or save the file as "CSV UTF-8"`;
}

function byteName(character: string): string {
  return `a byte 0x${character.charCodeAt(0).toString(16).padStart(2, "0")}, which is not a character`;
}

/** The kind of a file whose first bytes show that it is not text. */
function foreignKind(bytes: Uint8Array): string | null {
  const start = Buffer.from(bytes.subarray(0, 8)).toString("latin1");
  if (start.startsWith("\xd0\xcf\x11\xe0")) return "an old Office document, such as .doc or .xls";
  if (start.startsWith("%PDF")) return "a PDF";
  if (/^(\x89PNG|\xff\xd8\xff|GIF8|RIFF)/.test(start)) return "a picture or sound";
  return start.startsWith("\x1f\x8b") ? "a gzip file; unpack it first" : null;
}

/** How to decode a manifest, or the problem that prevents it. */
export async function examined(file: string, bytes: Bytes): Promise<FoundEncoding> {
  const first = new FirstLook(file);
  for await (const piece of bytes.pieces()) first.see(piece);
  const found = first.finding();
  if (!("suspect" in found)) return found;
  const second = new SecondLook(file, found.suspect);
  for await (const piece of bytes.pieces()) second.see(piece);
  return second.finding();
}

/** The text in pieces, without a byte order mark. */
export async function* textPieces(bytes: Bytes, encoding: Encoding): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding);
  for await (const piece of bytes.pieces()) yield asMeant(decoder.decode(piece, { stream: true }), encoding);
  yield asMeant(decoder.decode(), encoding);
}

/** The text as UTF-8, perhaps with a byte order mark. */
export async function* utf8Pieces(bytes: Bytes, encoding: Encoding): AsyncGenerator<Uint8Array> {
  if (encoding === "utf-8") yield* bytes.pieces();
  else for await (const text of textPieces(bytes, encoding)) yield Buffer.from(text);
}

/** Decodes a text in memory, such as a prompt file. */
export function decodedText(
  file: string,
  bytes: Uint8Array,
): { text: string; notes: string[] } | { problem: Problem } {
  const first = new FirstLook(file);
  first.see(bytes);
  let found = first.finding();
  if ("suspect" in found) {
    const second = new SecondLook(file, found.suspect);
    second.see(bytes);
    found = second.finding();
  }
  if ("problem" in found) return found;
  return { text: asMeant(new TextDecoder(found.encoding).decode(bytes), found.encoding), notes: found.notes };
}
