/**
 * Many formats state their own size. A file that is shorter was cut off on its way, even if a player or a decoder takes what
 * is there. Programs that write while they stream state a size that they do not know, such as 0 or the largest number, so only
 * a plausible one counts.
 */

/** Reads bytes of the file; fewer at its end. */
type ReadBytes = (start: number, end: number) => Promise<Buffer>;

/** Some programs count the header, or an odd byte, in or out. */
const toleranceBytes = 8;
/** From here on a size of 32 bits stands for "unknown". */
const implausible = 0x7fff0000;
const headBytes = 4_096;
/** How many chunks are followed at most: a file may consist of empty ones. */
const chunksMax = 10_000;

/** What the file states of itself and does not have, in words; null if nothing is missing. Rejects with errors of `read`. */
export async function missingPart(read: ReadBytes, size: number): Promise<string | null> {
  const head = await read(0, Math.min(size, headBytes));
  const end = await statedEnd(head, read, size);
  return end !== null && end > size + toleranceBytes ? `states ${end} bytes and has ${size}` : null;
}

/** Where the file should end by what it states; null if it states nothing. */
async function statedEnd(head: Buffer, read: ReadBytes, size: number): Promise<number | null> {
  const four = (at: number) => head.toString("latin1", at, at + 4);
  if (four(0) === "RIFF")
    return chunks(read, size, { first: 12, whole: head.readUInt32LE(4), littleEndian: true });
  if (four(0) === "FORM")
    return chunks(read, size, { first: 12, whole: head.readUInt32BE(4), littleEndian: false });
  if (head.subarray(0, 8).equals(pngSignature)) return pngEnd(read, size);
  if (four(4) === "ftyp") return boxes(read, size);
  if (four(0) === "OggS") return oggEnd(read, size);
  if (head.subarray(0, 4).equals(ebmlSignature)) return ebmlEnd(head);
  if (four(0).startsWith("BM") && head.length >= 6) return known(head.readUInt32LE(2));
  return xingEnd(head, read, size);
}

const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const ebmlSignature = Buffer.from([0x1a, 0x45, 0xdf, 0xa3]);

/** The name of a chunk or box. Anything else was put behind the file. */
function isName(text: string): boolean {
  return /^[\x20-\x7e\xa9]{4}$/.test(text);
}

function known(bytes: number): number | null {
  return bytes === 0 || bytes >= implausible ? null : bytes;
}

/** RIFF (WAV, AVI, WebP) and FORM (AIFF): the whole, and each of its chunks. */
async function chunks(
  read: ReadBytes,
  size: number,
  { first, whole, littleEndian }: { first: number; whole: number; littleEndian: boolean },
): Promise<number | null> {
  const stated = known(whole);
  let end = stated === null ? 0 : stated + 8;
  let at = first;
  for (let number = 0; at + 8 <= size && number < chunksMax; number++) {
    if (stated !== null && at >= stated + 8) break;
    const header = await read(at, at + 8);
    const name = header.toString("latin1", 0, 4);
    if (!isName(name)) break;
    const bytes = littleEndian ? header.readUInt32LE(4) : header.readUInt32BE(4);
    // What comes behind data of unknown size cannot be found.
    if (bytes >= implausible || (name === "data" && bytes === 0)) break;
    at += 8 + bytes + (bytes % 2);
    end = Math.max(end, at);
  }
  return end === 0 ? null : end;
}

async function pngEnd(read: ReadBytes, size: number): Promise<number | null> {
  let at = 8;
  for (let number = 0; at + 8 <= size && number < chunksMax; number++) {
    const header = await read(at, at + 8);
    at += 12 + header.readUInt32BE(0);
    if (header.toString("latin1", 4) === "IEND") break;
  }
  return at;
}

/** MP4, MOV, HEIC and AVIF: boxes to the end of the file, of which the last may leave its size open. */
async function boxes(read: ReadBytes, size: number): Promise<number | null> {
  let at = 0;
  for (let number = 0; at + 8 <= size && number < chunksMax; number++) {
    const header = await read(at, Math.min(size, at + 16));
    if (!isName(header.toString("latin1", 4, 8))) return at;
    const short = header.readUInt32BE(0);
    if (short === 0) return null;
    if (short === 1 && header.length < 16) return at + 16;
    const bytes = short === 1 ? Number(header.readBigUInt64BE(8)) : short;
    if (bytes < 8) return null;
    at += bytes;
  }
  return Number.isSafeInteger(at) ? at : null;
}

/** The largest page of an Ogg file, with its header. */
const oggPageMax = 27 + 255 + 255 * 255;

/** The last page must be whole. */
async function oggEnd(read: ReadBytes, size: number): Promise<number | null> {
  const start = Math.max(0, size - oggPageMax);
  const tail = await read(start, size);
  const at = tail.lastIndexOf("OggS", undefined, "latin1");
  if (at < 0) return null;
  if (tail.length < at + 27) return start + at + 27 + toleranceBytes + 1;
  const segments = tail[at + 26] ?? 0;
  const table = tail.subarray(at + 27, at + 27 + segments);
  const body = table.reduce((sum, bytes) => sum + bytes, 0);
  return start + at + 27 + segments + body;
}

/** WebM and Matroska: the size of the one segment, unless it is left open. */
function ebmlEnd(head: Buffer): number | null {
  const header = vint(head, 4);
  if (header?.value === null || header === null) return null;
  const segment = header.next + header.value;
  if (segment + 12 > head.length || head.readUInt32BE(segment) !== 0x18538067) return null;
  const length = vint(head, segment + 4);
  return length === null || length.value === null ? null : length.next + length.value;
}

/** A number of variable length, and where it ends; its value is null if it stands for "unknown". */
function vint(bytes: Buffer, at: number): { value: number | null; next: number } | null {
  const first = bytes[at];
  if (first === undefined || first === 0) return null;
  const length = Math.clz32(first) - 23;
  const all = bytes.subarray(at, at + length);
  if (all.length < length) return null;
  let value = BigInt(first & (0xff >> length));
  for (const byte of all.subarray(1)) value = (value << 8n) | BigInt(byte);
  const isOpen = value === (1n << BigInt(7 * length)) - 1n;
  return {
    value: isOpen || value > BigInt(Number.MAX_SAFE_INTEGER) ? null : Number(value),
    next: at + length,
  };
}

/** The Xing or Info header in the first frame of an MP3 states its bytes, from that frame on. */
async function xingEnd(head: Buffer, read: ReadBytes, size: number): Promise<number | null> {
  const tag = head.toString("latin1", 0, 3) === "ID3" && head.length >= 10 ? id3Bytes(head) : 0;
  const frame = tag === 0 ? head : await read(tag, Math.min(size, tag + headBytes));
  if (frame[0] !== 0xff || ((frame[1] ?? 0) & 0xe0) !== 0xe0) return null;
  for (const name of ["Xing", "Info"]) {
    const at = frame.subarray(0, 64).indexOf(name, 0, "latin1");
    if (at < 0 || frame.length < at + 16) continue;
    const flags = frame.readUInt32BE(at + 4);
    if ((flags & 2) === 0) return null;
    return known(frame.readUInt32BE(at + 8 + ((flags & 1) === 1 ? 4 : 0)));
  }
  return null;
}

function id3Bytes(head: Buffer): number {
  const size = [6, 7, 8, 9].reduce((sum, at) => sum * 128 + ((head[at] ?? 0) & 0x7f), 0);
  return 10 + size;
}
