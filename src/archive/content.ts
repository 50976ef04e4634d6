import { Readable } from "node:stream";
import type { ByteRange, Disk } from "../core/disk.js";
import { extentOf, type ReadBytes } from "./extent.js";

/**
 * What a downloaded file really is. Names and headers are the server's opinion; a signed URL that answers 200 with an
 * error page, a transfer that ended early, or a video in place of a picture are only seen in the content.
 */

/**
 * How far a file was looked at: `decoded`: every pixel; `container`: stated length, tracks, and the last packet of
 * each; `type`: only that its first bytes are of that format (formats that nothing here can read further).
 */
type CheckLevel = "decoded" | "container" | "type";

export type Content =
  | { kind: "media"; extension: string; mime: string; check: CheckLevel }
  /** Not what was ordered: broken, cut off, of another category, or no media at all. */
  | { kind: "bad"; reason: string };

/** Looks at the file at `path`. `category` is the task's; one that is not known accepts any media. Rejects with errors of the disk. */
export async function inspect(disk: Disk, path: string, category: string): Promise<Content> {
  const size = (await disk.size(path)) ?? 0;
  if (size === 0) return { kind: "bad", reason: "the file is empty" };
  const type = await typeOf(disk, path);
  if (type === undefined || type.mime === "application/xml")
    return { kind: "bad", reason: `expected ${category}, got ${await describe(disk, path)}` };
  const { ext: extension, mime } = type;
  const media = mime.split("/")[0] ?? "";
  if (!fits(category, media)) return { kind: "bad", reason: `expected ${category}, got ${mime}` };
  const missing = await extentOf(extension)?.(readerOf(disk, path), size);
  if (typeof missing === "string") return { kind: "bad", reason: `${mime} is cut off: ${missing}` };
  if (decodable.has(mime)) return decode(disk, path, extension, mime);
  if (readable.has(extension)) return openTracks(disk, path, size, category, extension, mime);
  return { kind: "media", extension, mime, check: "type" };
}

/** Containers made for video may hold sound alone; the tracks tell. */
function fits(category: string, media: string): boolean {
  if (category === "audio") return media === "audio" || media === "video";
  if (category === "image" || category === "video") return media === category;
  return true;
}

async function typeOf(disk: Disk, path: string): Promise<{ ext: string; mime: string } | undefined> {
  const { fileTypeFromStream } = await import("file-type");
  const stream = Readable.from(disk.read(path), { objectMode: false });
  try {
    const type = await fileTypeFromStream(stream);
    // Such as `audio/ogg; codecs=opus`.
    return type === undefined ? undefined : { ext: type.ext, mime: type.mime.replace(/\s*;.*$/, "") };
  } finally {
    stream.destroy();
  }
}

/** For the person who reads the reason: error pages and messages are text. */
async function describe(disk: Disk, path: string): Promise<string> {
  const head = (await readAll(disk, path, { start: 0, end: 512 })).toString("latin1").trimStart();
  if (/^(<!doctype html|<html|<head|<body)/i.test(head)) return "an HTML page";
  if (/^</.test(head)) return "XML";
  if (/^[[{]/.test(head)) return "JSON";
  return "something that is no known media format";
}

/** What sharp reads. */
const decodable = new Set(["image/png", "image/jpeg", "image/webp", "image/gif", "image/tiff", "image/avif"]);
const animated = new Set(["image/webp", "image/gif"]);

/**
 * Decodes every pixel, shrinking on the way so that a large picture needs little memory. `failOn: "error"` still
 * catches every cut, but forgives the odd colour profiles that the strictest level refuses.
 */
async function decode(disk: Disk, path: string, extension: string, mime: string): Promise<Content> {
  const bytes = await readAll(disk, path);
  const { default: sharp } = await import("sharp");
  try {
    await sharp(bytes, { failOn: "error", sequentialRead: true, animated: animated.has(mime) })
      .resize(8, 8, { fit: "fill", kernel: "linear", fastShrinkOnLoad: false })
      .raw()
      .toBuffer();
    return { kind: "media", extension, mime, check: "decoded" };
  } catch (error) {
    return { kind: "bad", reason: `${mime} cannot be decoded: ${oneLine(error)}` };
  }
}

/** What mediabunny reads, by file-type's extension. */
const readable = new Set([
  "mp4",
  "m4v",
  "m4a",
  "mov",
  "webm",
  "mkv",
  "mp3",
  "wav",
  "ogg",
  "oga",
  "opus",
  "flac",
]);

async function openTracks(
  disk: Disk,
  path: string,
  size: number,
  category: string,
  extension: string,
  mime: string,
): Promise<Content> {
  const { ALL_FORMATS, CustomSource, EncodedPacketSink, Input } = await import("mediabunny");
  const bytes = readerOf(disk, path);
  let diskError: unknown;
  const read = async (start: number, end: number) => {
    try {
      return await bytes(start, end);
    } catch (error) {
      diskError = error;
      throw error;
    }
  };
  const input = new Input({ formats: ALL_FORMATS, source: new CustomSource({ getSize: () => size, read }) });
  try {
    const tracks = await input.getTracks();
    const wanted = category === "audio" || category === "video" ? category : null;
    if (tracks.length === 0 || (wanted !== null && !tracks.some((track) => track.type === wanted)))
      return { kind: "bad", reason: `expected ${category}, got ${mime} without such a track` };
    for (const track of tracks) {
      const last = await new EncodedPacketSink(track).getPacket(Number.POSITIVE_INFINITY);
      if (last === null) return { kind: "bad", reason: `${mime} has an empty ${track.type} track` };
    }
    const soundOnly = category === "audio" && !tracks.some((track) => track.type === "video");
    return {
      kind: "media",
      extension,
      mime: soundOnly ? mime.replace(/^video/, "audio") : mime,
      check: "container",
    };
  } catch (error) {
    // A disk that fails says nothing about the file.
    if (diskError !== undefined) throw diskError;
    return { kind: "bad", reason: `${mime} cannot be read: ${oneLine(error)}` };
  } finally {
    input.dispose();
  }
}

function readerOf(disk: Disk, path: string): ReadBytes {
  return (start, end) => readAll(disk, path, { start, end });
}

async function readAll(disk: Disk, path: string, range?: ByteRange): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of disk.read(path, range)) pieces.push(piece);
  return Buffer.concat(pieces);
}

function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, " ").trim().slice(0, 200);
}
