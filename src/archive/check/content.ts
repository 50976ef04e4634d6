import { Readable } from "node:stream";
import type { ByteRange, Disk } from "../../core/ports/disk.js";
import { extentOf, isOpenEnded, type ReadBytes, soundBytes } from "./extent.js";
import { walkPackets } from "./packets.js";
import { decodable, pictureFault } from "./pictures.js";

/**
 * What a downloaded file really is. Names and headers are the server's opinion; a signed URL that answers 200 with an
 * error page, a transfer that ended early, or a video in place of a picture are only seen in the content.
 */

/**
 * How far a file was looked at: `decoded`: every pixel; `packets`: every packet lies whole where the file says, and is
 * well formed as far as its format can tell; `type`: only that its first bytes are of that format (formats that nothing
 * here can read further).
 */
type CheckLevel = "decoded" | "packets" | "type";

export type MediaContent =
  | {
      kind: "media";
      extension: string;
      mime: string;
      check: CheckLevel;
      /** The content alone cannot show that it is all there; see `isOpenEnded`. */
      openEnded?: true;
    }
  /** Not what was ordered: broken, cut off, of another category, or no media at all. */
  | { kind: "bad"; reason: string };

/** Looks at the file at `path`. `category` is the task's; one that is not known accepts any media. Rejects with errors of the disk. */
export async function inspect(disk: Disk, path: string, category: string): Promise<MediaContent> {
  const size = await disk.size(path);
  if (size === null) throw Object.assign(new Error(`ENOENT: ${path} is gone`), { code: "ENOENT" });
  if (size === 0) return { kind: "bad", reason: "the file is empty" };
  const type = await typeOf(disk, path);
  if (type === undefined || type.mime === "application/xml")
    return { kind: "bad", reason: `expected ${category}, got ${await describe(disk, path)}` };
  const { ext: extension, mime } = type;
  const media = mime.split("/")[0] ?? "";
  if (!fits(category, media)) return { kind: "bad", reason: `expected ${category}, got ${mime}` };
  const missing = await extentOf(extension)?.(readerOf(disk, path), size);
  if (typeof missing === "string") return { kind: "bad", reason: `${mime} is cut off: ${missing}` };
  if (decodable.has(mime)) {
    const fault = await pictureFault(await readAll(disk, path), mime);
    if (fault !== null) return { kind: "bad", reason: `${mime} ${fault}` };
    return { kind: "media", extension, mime, check: "decoded" };
  }
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
): Promise<MediaContent> {
  const { ALL_FORMATS, CustomSource, Input } = await import("mediabunny");
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
    let [packetBytes, packets] = [0, 0];
    for (const track of tracks) {
      const walk = await walkPackets(track);
      if (walk.packets === 0) return { kind: "bad", reason: `${mime} has an empty ${track.type} track` };
      if (walk.fault !== null) return { kind: "bad", reason: `${mime} is damaged: ${walk.fault}` };
      packetBytes += walk.bytes;
      packets += walk.packets;
    }
    if (extension === "mp3" && (await soundBytes(read, size)) - packetBytes > 1.5 * (packetBytes / packets))
      return { kind: "bad", reason: `${mime} is damaged: more than a frame of it is no sound` };
    const soundOnly = category === "audio" && !tracks.some((track) => track.type === "video");
    return {
      kind: "media",
      extension,
      mime: soundOnly ? mime.replace(/^video/, "audio") : mime,
      check: "packets",
      ...((await isOpenEnded(extension, read, size)) && { openEnded: true }),
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
