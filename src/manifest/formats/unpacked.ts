import { crc32, inflateRawSync } from "node:zlib";

/**
 * A small workbook may unpack to any size, and a single cell far away makes a reader fill in all the rows and columns
 * before it. So a workbook is measured before it is read: in the order of its entries, as the reader unpacks them, and
 * not by the sizes that it states.
 */
const unpackedBytesMax = 500_000_000;

/** As many as a spreadsheet has. */
const rowsMax = 1_048_576;
const columnsMax = 16_384;
/** A million rows of 50 columns. */
const cellsMax = 50_000_000;

interface Measured {
  /** What is too large about it. */
  large: { what: string; expected: string } | null;
  /**
   * The workbook's bytes without any that follow its end; null if its files are damaged. The reader would wait forever for
   * what is missing in some damaged workbooks, and for more after the end.
   */
  whole: Uint8Array | null;
}

export function measure(bytes: Uint8Array, bytesMax = unpackedBytesMax): Measured {
  let left = bytesMax;
  const entries = entriesOf(bytes, bytesMax);
  for (;;) {
    const { done, value } = entries.next();
    if (done) return { large: null, whole: value === null ? null : bytes.subarray(0, value) };
    const { content } = value;
    left -= content.length;
    if (left < 0) {
      const expected = `at most ${bytesMax / 1_000_000} MB`;
      return { large: { what: "the workbook is too large when it is unpacked", expected }, whole: null };
    }
    if (isFar(content)) {
      const expected = `at most ${rowsMax} rows, ${columnsMax} columns, and ${cellsMax / 1_000_000} million cells`;
      return {
        large: { what: "the workbook has a cell too far from its first one", expected },
        whole: null,
      };
    }
  }
}

/**
 * The files of a workbook, up to the first that is damaged or with which they exceed `bytesMax`. Returns where the workbook
 * ends; null if a file is damaged, or if the directory that follows does not list exactly these files.
 */
export function* entriesOf(
  bytes: Uint8Array,
  bytesMax = unpackedBytesMax,
): Generator<{ name: string; content: Buffer }, number | null> {
  const zip = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let left = bytesMax;
  let at = 0;
  const places = new Set<number>();
  while (marks(zip, at, entryMark) && at + 30 <= zip.length) {
    places.add(at);
    const nameEnd = at + 30 + zip.readUInt16LE(at + 26);
    const from = nameEnd + zip.readUInt16LE(at + 28);
    const entry = unpacked(zip, at, from, left);
    if (entry === null) return null;
    yield { name: zip.toString("utf8", at + 30, nameEnd), content: entry.content };
    left -= entry.content.length;
    const end = from + entry.packed;
    if (left < 0 || crc32(entry.content) !== statedSum(zip, at, end)) return null;
    // What an entry's header leaves open follows its content, in up to 24 bytes.
    at = end;
    while (at < end + 24 && !marks(zip, at, entryMark) && !marks(zip, at, directoryMark)) at++;
  }
  return endOfDirectory(zip, at, places);
}

/** Where the directory of just the entries at these places ends; null if there is none, or not all of it. */
function endOfDirectory(zip: Buffer, start: number, places: Set<number>): number | null {
  const entries = places.size;
  let at = start;
  while (marks(zip, at, directoryMark) && at + 46 <= zip.length) {
    if (!places.delete(zip.readUInt32LE(at + 42))) return null;
    at += 46 + [28, 30, 32].reduce((sum, length) => sum + zip.readUInt16LE(at + length), 0);
  }
  // A large workbook may say more about its size in between.
  const end = zip.indexOf(endMark, at, "latin1");
  if (places.size > 0 || end < 0 || end + 22 > zip.length) return null;
  const named = { entries: zip.readUInt16LE(end + 10), start: zip.readUInt32LE(end + 16) };
  const afterComment = end + 22 + zip.readUInt16LE(end + 20);
  const isRight = named.entries === entries && named.start === start && afterComment <= zip.length;
  return isRight ? afterComment : null;
}

const entryMark = "PK\x03\x04";
const directoryMark = "PK\x01\x02";
const descriptorMark = "PK\x07\x08";
const endMark = "PK\x05\x06";

function marks(zip: Buffer, at: number, mark: string): boolean {
  return zip.toString("latin1", at, at + mark.length) === mark;
}

/** Whether an entry was written before its size and checksum were known. */
function sumFollows(zip: Buffer, at: number): boolean {
  return (zip.readUInt16LE(at + 6) & 8) !== 0;
}

/** The checksum of an entry: in its header, or after its content. */
function statedSum(zip: Buffer, at: number, end: number): number | null {
  const place = sumFollows(zip, at) ? end + (marks(zip, end, descriptorMark) ? 4 : 0) : at + 14;
  return place + 4 <= zip.length ? zip.readUInt32LE(place) : null;
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
    const stated = zip.readUInt32LE(at + 18);
    const packed =
      stated === 0 && sumFollows(zip, at)
        ? Math.max(0, zip.indexOf(descriptorMark, from, "latin1") - from)
        : stated;
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
/** The tag of a cell or row, up to its end. Its values may hold any character but their own quote. */
const cellTag = /<(?:[\w.-]+:)?(?:c|row)(?=\s)((?:[^"'>]|"[^"]{0,10000}"|'[^']{0,10000}')*)/g;
/** An address in any other form, such as `é?1`, which the reader takes for a column far away. */
const oddAddress = /\sr\s*=\s*["'](?!\s*[A-Za-z]*\d+\s*["'])/;
/** More than the longest address, with the attributes before it. */
const addressBytes = 1_000;

function isFar(content: Buffer): boolean {
  let rows = 0;
  let columns = 0;
  for (const text of pieces(content, addressBytes)) {
    for (const [, attributes = ""] of text.matchAll(cellTag)) if (oddAddress.test(attributes)) return true;
    for (const [, letters = "", row] of text.matchAll(address)) {
      if (row === undefined) return true;
      rows = Math.max(rows, Number(row));
      columns = Math.max(columns, columnOf(letters));
    }
  }
  return rows > rowsMax || columns > columnsMax || rows * columns > cellsMax;
}

const stepBytes = 1_000_000;

/** The text of a file in pieces that overlap: text that is no longer than the overlap is complete in one of them. */
export function* pieces(content: Buffer, overlapBytes: number): Generator<string> {
  for (let at = 0; at < content.length; at += stepBytes)
    yield content.toString("latin1", at, at + stepBytes + overlapBytes);
}

/** The number of a column by its letters: 28 for AB. */
export function columnOf(letters: string): number {
  return [...letters.toUpperCase()].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0);
}
