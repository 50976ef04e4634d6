/**
 * How long a media file says it is. Readers of media are made to play what is there, so they accept a file whose
 * tail is missing; most containers however state their length, and a download is only complete when it is all there.
 * Only the outermost structure is read here: nothing is decoded, and a few kilobytes suffice for any size.
 */

/** The bytes from `start` up to and without `end`; fewer where the file ends. */
export type ReadBytes = (start: number, end: number) => Promise<Buffer>;

/** Null when the file is as long as it says, or does not say; else what is missing, in words. */
export type Extent = (read: ReadBytes, size: number) => Promise<string | null>;

/**
 * Whether the file cannot show that it is all there: written as it was made, without a length or a mark at its end.
 * Then only a length that somebody else stated can. For files whose extent was found to be well.
 */
export async function isOpenEnded(extension: string, read: ReadBytes, size: number): Promise<boolean> {
  const extent = extentOf(extension);
  if (extent === boxes) return isFragmentedWithoutEnd(read, size);
  if (extent === elements) return isRecordedLive(read, size);
  return extension === "wav" && isPiped((await read(4, 8)).readUInt32LE(0));
}

/** By file-type's name of the format. Formats that are not here do not state a length, or are decoded in full. */
export function extentOf(extension: string): Extent | undefined {
  return byExtension[extension];
}

const byExtension: Readonly<Record<string, Extent>> = {
  wav: riff,
  webp: riff,
  mp4: boxes,
  m4v: boxes,
  m4a: boxes,
  mov: boxes,
  avif: boxes,
  webm: elements,
  mkv: elements,
  ogg: pages,
  oga: pages,
  ogv: pages,
  opus: pages,
  mp3: frames,
  png: pngEnd,
  jpg: jpegEnd,
  gif: gifEnd,
};

/** RIFF: one length for all. */
async function riff(read: ReadBytes, size: number): Promise<string | null> {
  const head = await read(4, 8);
  if (head.length < 4) return "no RIFF header";
  const stated = head.readUInt32LE(0);
  return isPiped(stated) ? null : short(stated + 8, size);
}

/** Programs that write to a pipe leave the length at its extremes. */
function isPiped(stated: number): boolean {
  return stated === 0 || stated === 0xffffffff;
}

/** MP4 and its kin: boxes one after the other, each with its length. */
async function boxes(read: ReadBytes, size: number): Promise<string | null> {
  for (let at = 0; at < size; ) {
    const head = await read(at, at + 16);
    if (head.length < 8) return "ends within a box header";
    const stated = head.readUInt32BE(0);
    if (stated === 0) return null;
    if (stated === 1 && head.length < 16) return "ends within a box header";
    const length = stated === 1 ? Number(head.readBigUInt64BE(8)) : stated;
    if (length < 8) return `a box of ${length} bytes`;
    if (at + length > size) return short(at + length, size);
    at += length;
  }
  return null;
}

/** Fragments follow each other for as long as there are some; an index of them may mark the end. */
async function isFragmentedWithoutEnd(read: ReadBytes, size: number): Promise<boolean> {
  let [fragments, last] = [0, ""];
  for (let at = 0; at < size; ) {
    const head = await read(at, at + 16);
    const stated = head.readUInt32BE(0);
    last = head.toString("latin1", 4, 8);
    if (last === "moof") fragments++;
    if (stated === 0) return true;
    at += stated === 1 ? Number(head.readBigUInt64BE(8)) : stated;
  }
  return fragments > 0 && last !== "mfra";
}

const segmentId = 0x18538067;

/** Matroska and WebM: elements, of which the segment contains the rest. Live recordings leave lengths unknown. */
async function elements(read: ReadBytes, size: number): Promise<string | null> {
  for (let at = 0; at < size; ) {
    const element = elementAt(await read(at, at + 12));
    if (element === null) return "ends within an element header";
    const start = at + element.headBytes;
    if (element.length !== null && start + element.length > size) return short(start + element.length, size);
    if (element.id === segmentId) at = start;
    else if (element.length === null) return null;
    else at = start + element.length;
  }
  return null;
}

async function isRecordedLive(read: ReadBytes, size: number): Promise<boolean> {
  for (let at = 0; at < size; ) {
    const element = elementAt(await read(at, at + 12));
    if (element === null || element.length === null) return true;
    at += element.headBytes + element.length;
  }
  return false;
}

/** Id and length are numbers whose own length is told by their leading zero bits; all ones means unknown. */
function elementAt(head: Buffer): { id: number; length: number | null; headBytes: number } | null {
  const idBytes = Math.clz32(head[0] ?? 0) - 23;
  const lengthBytes = Math.clz32(head[idBytes] ?? 0) - 23;
  if (idBytes > 4 || lengthBytes > 8 || head.length < idBytes + lengthBytes) return null;
  let length = (head[idBytes] ?? 0) & (0xff >> lengthBytes);
  for (let index = 1; index < lengthBytes; index++) length = length * 256 + (head[idBytes + index] ?? 0);
  const unknown = length >= 2 ** (7 * lengthBytes) - 1;
  return {
    id: head.readUIntBE(0, idBytes),
    length: unknown ? null : length,
    headBytes: idBytes + lengthBytes,
  };
}

/** Ogg: pages; the last one is marked as the end of its stream. */
async function pages(read: ReadBytes, size: number): Promise<string | null> {
  let flags = 0;
  for (let at = 0; at < size; ) {
    const head = await read(at, at + 27 + 255);
    const segments = head[26] ?? 0;
    if (head.length < 27 + segments || head.toString("latin1", 0, 4) !== "OggS")
      return "ends within a page header";
    const body = head.subarray(27, 27 + segments).reduce((sum, length) => sum + length, 0);
    flags = head[5] ?? 0;
    const end = at + 27 + segments + body;
    if (end > size) return short(end, size);
    if (!isIntactPage(await read(at, end))) return `the page at byte ${at} does not have its checksum`;
    at = end;
  }
  return (flags & 4) === 0 ? "the last page is not marked as the end" : null;
}

/** An Ogg page is summed up with its own checksum (bytes 22 to 25) taken for zero. */
function isIntactPage(page: Buffer): boolean {
  let sum = 0;
  page.forEach((byte, at) => {
    sum = (sum << 8) ^ (crcTable[(sum >>> 24) ^ (at >= 22 && at < 26 ? 0 : byte)] ?? 0);
  });
  return sum >>> 0 === page.readUInt32LE(22);
}

/** Of the polynomial 0x04c11db7, highest bit first: not the CRC that zlib has. */
const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte << 24;
  for (let bit = 0; bit < 8; bit++) sum = (sum << 1) ^ (sum < 0 ? 0x04c11db7 : 0);
  return sum;
});

/** Where an MP3 begins, after its tag. */
async function soundStart(read: ReadBytes): Promise<number> {
  const tag = await read(0, 10);
  const tagged = tag.length === 10 && tag.toString("latin1", 0, 3) === "ID3";
  return tagged ? 10 + [6, 7, 8, 9].reduce((sum, at) => sum * 128 + ((tag[at] ?? 0) & 0x7f), 0) : 0;
}

/** Bytes of an MP3 between its tags. */
export async function soundBytes(read: ReadBytes, size: number): Promise<number> {
  const end = await read(Math.max(0, size - 128), size);
  return size - (await soundStart(read)) - (end.toString("latin1", 0, 3) === "TAG" ? 128 : 0);
}

/** MP3: the first frame may hold a note with the number of bytes ("Xing" or "Info"). */
async function frames(read: ReadBytes, size: number): Promise<string | null> {
  const start = await soundStart(read);
  const frame = await read(start, start + 64);
  const note = Math.max(frame.indexOf("Xing"), frame.indexOf("Info"));
  if (note < 0 || frame.length < note + 16) return null;
  const fields = frame.readUInt32BE(note + 4);
  if ((fields & 2) === 0) return null;
  return short(start + frame.readUInt32BE(note + ((fields & 1) === 0 ? 8 : 12)), size);
}

/** Decoders are content once they have all pixels; bytes after the end mark are harmless. */
async function pngEnd(read: ReadBytes, size: number): Promise<string | null> {
  const tail = await read(Math.max(0, size - 65_536), size);
  return tail.includes(Buffer.from("IEND\xae\x42\x60\x82", "latin1")) ? null : "no end mark";
}

/** Decoders stop at the last row; what follows the end mark is often a preview or zeros. */
async function jpegEnd(read: ReadBytes, size: number): Promise<string | null> {
  const tail = await read(Math.max(0, size - 65_536), size);
  return tail.includes(Buffer.from([0xff, 0xd9])) ? null : "no end mark";
}

async function gifEnd(read: ReadBytes, size: number): Promise<string | null> {
  const tail = await read(Math.max(0, size - 1024), size);
  const last = tail.findLastIndex((byte) => byte !== 0);
  return tail[last] === 0x3b ? null : "no end mark";
}

function short(stated: number, size: number): string | null {
  return stated > size ? `${size} bytes of the ${stated} it says it has` : null;
}
