import { inflateRawSync } from "node:zlib";

/**
 * A small workbook may unpack to any size, and a single cell far away makes a reader fill in all the rows and columns
 * before it. So a workbook is measured before it is read: in the order of its entries, as the reader unpacks them, and
 * not by the sizes that it states of itself.
 */
const unpackedBytesMax = 500_000_000;

/** As many as a spreadsheet has. */
const rowsMax = 1_048_576;
const columnsMax = 16_384;
/** A million rows of 50 columns. */
const cellsMax = 50_000_000;

/** What is too large about the bytes of a workbook, or null. Damage is left to the reader to report. */
export function tooLarge(
  bytes: Uint8Array,
  bytesMax = unpackedBytesMax,
): { what: string; expected: string } | null {
  let left = bytesMax;
  for (const { content } of entriesOf(bytes, bytesMax)) {
    left -= content.length;
    if (left < 0)
      return {
        what: "the workbook is too large when it is unpacked",
        expected: `at most ${bytesMax / 1_000_000} MB`,
      };
    if (isFar(content))
      return {
        what: "the workbook has a cell too far from its first one",
        expected: `at most ${rowsMax} rows, ${columnsMax} columns, and ${cellsMax / 1_000_000} million cells`,
      };
  }
  return null;
}

/** The files of a workbook, up to the first that is damaged. The last has more than is left of `bytesMax`, if they have. */
export function* entriesOf(
  bytes: Uint8Array,
  bytesMax = unpackedBytesMax,
): Generator<{ name: string; content: Buffer }> {
  const zip = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let left = bytesMax;
  for (let at = 0; zip.toString("latin1", at, at + 4) === "PK\x03\x04" && at + 30 <= zip.length; ) {
    const nameEnd = at + 30 + zip.readUInt16LE(at + 26);
    const from = nameEnd + zip.readUInt16LE(at + 28);
    const entry = unpacked(zip, at, from, left);
    if (entry === null) return;
    yield { name: zip.toString("utf8", at + 30, nameEnd), content: entry.content };
    left -= entry.content.length;
    if (left < 0) return;
    at = from + entry.packed;
    // What an entry's header leaves open follows its content, in up to 24 bytes.
    const next = zip.subarray(at, at + 28).indexOf("PK\x03\x04", 0, "latin1");
    if (next > 0) at += next;
  }
}

/** Four times as much as zlib's default: a workbook of hundreds of megabytes is unpacked in a tenth of the time. */
const chunkSize = 64 * 1024;

/** The content of an entry, or more than `left` bytes if it has more than that; null if it cannot be unpacked. */
function unpacked(
  zip: Buffer,
  at: number,
  from: number,
  left: number,
): { content: Buffer; packed: number } | null {
  const method = zip.readUInt16LE(at + 8);
  if (method === 0) {
    const packed = zip.readUInt32LE(at + 18);
    return { content: zip.subarray(from, from + packed), packed };
  }
  try {
    const made = inflateRawSync(zip.subarray(from), {
      maxOutputLength: Math.max(left, 1),
      chunkSize,
      info: true,
    });
    const { buffer, engine } = made as unknown as { buffer: Buffer; engine: { bytesWritten: number } };
    return { content: buffer, packed: engine.bytesWritten };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_BUFFER_TOO_LARGE") return null;
    return { content: Buffer.alloc(left + 1), packed: 0 };
  }
}

/** Addresses of rows and cells, such as `r="B12"`; one written with a character reference counts as far. */
const address = /\sr\s*=\s*["']\s*(?:([A-Za-z]*)(\d+)\s*["']|[^"'>]*&)/g;
/** More than the longest address. */
const addressBytes = 100;

function isFar(content: Buffer): boolean {
  let rows = 0;
  let columns = 0;
  for (const text of pieces(content, addressBytes))
    for (const [, letters = "", row] of text.matchAll(address)) {
      if (row === undefined) return true;
      rows = Math.max(rows, Number(row));
      columns = Math.max(columns, columnOf(letters));
    }
  return rows > rowsMax || columns > columnsMax || rows * columns > cellsMax;
}

const stepBytes = 1_000_000;

/** The text of a file in pieces that overlap: what is no longer than that is whole in one of them. */
export function* pieces(content: Buffer, overlapBytes: number): Generator<string> {
  for (let at = 0; at < content.length; at += stepBytes)
    yield content.toString("latin1", at, at + stepBytes + overlapBytes);
}

/** The number of a column by its letters: 28 for AB. */
export function columnOf(letters: string): number {
  return [...letters.toUpperCase()].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0);
}
