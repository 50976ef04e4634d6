import { Readable } from "node:stream";
import type { Disk } from "../../core/ports/disk.js";
import { wholeOf } from "../../text/pieces.js";
import { decodable, decodedSize, isSmallAndWhole, oneLine, pictureFault, shownSize } from "./pictures.js";
import { missingPart } from "./stated-size.js";

/**
 * What a downloaded file really is. A server may answer 200 with an error page, end a transfer early, or send a video
 * in place of a picture; only the content shows it.
 */

/**
 * How far a file was checked. `decoded`: every pixel was decoded. `packets`: the container and every packet in it could
 * be read. `type`: only the first bytes were recognised, because no library here reads the format further. Only
 * `decoded` proves that the end of the file is there: players accept a truncated video or sound. `accepted`: the file failed
 * its check, and a person took it as it is.
 */
type CheckLevel = "decoded" | "packets" | "type" | "accepted";

/** As far as the check came across them. */
export interface Measures {
  /** Of a picture or a film as it is shown, in pixels. */
  width?: number;
  height?: number;
  /** Of a film or a sound, in seconds. */
  duration?: number;
}

export function measuresOf({ width, height, duration }: Measures): Measures {
  return {
    ...(width === undefined ? {} : { width }),
    ...(height === undefined ? {} : { height }),
    ...(duration === undefined ? {} : { duration }),
  };
}

/** A file up to this size is read once, whole. */
export const smallBytes = 4 * 2 ** 20;

export type MediaContent =
  /** `because` says why only the type was checked, for a format that is normally read further. */
  | ({ kind: "media"; extension: string; mime: string; check: CheckLevel; because?: string } & Measures)
  /** Not what was ordered: broken, truncated, of another category, or not media. */
  | { kind: "bad"; reason: string };

/**
 * Checks the file at `path`. `category` is the task's; an unknown category accepts any media. With `typeBecause`, only
 * the type is checked, for that reason. Rejects with errors of the disk.
 */
export async function inspect(
  disk: Disk,
  path: string,
  category: string,
  typeBecause?: string,
): Promise<MediaContent> {
  const size = await disk.size(path);
  if (size === null) throw Object.assign(new Error(`ENOENT: ${path} is gone`), { code: "ENOENT" });
  if (size === 0) return { kind: "bad", reason: "the file is empty" };
  const small = size <= smallBytes ? await wholeOf(disk.read(path, { start: 0, end: size })) : null;
  const type = await typeOf(small ?? Readable.from(disk.read(path), { objectMode: false }));
  const drawing = isText(type) ? await drawingIn(disk, path, size) : null;
  if (drawing !== null)
    return category === "video" || category === "audio" ? wrongDrawing(category) : drawing;
  if (type === undefined || type.mime === "application/xml")
    return { kind: "bad", reason: `expected ${category}, got ${await describe(disk, path)}` };
  const { ext: extension, mime } = type;
  const media = mime.split("/")[0] ?? "";
  if (!fits(category, media)) return { kind: "bad", reason: `expected ${category}, got ${mime}` };
  const unread = (because: string): MediaContent => ({
    kind: "media",
    extension,
    mime,
    check: "type",
    because,
  });
  const readBytes = async (start: number, end: number) =>
    small === null ? wholeOf(disk.read(path, { start, end })) : small.subarray(start, end);
  const missing = await missingPart(readBytes, size);
  const cut: MediaContent | null =
    missing === null ? null : { kind: "bad", reason: `${mime} was cut off: it ${missing}` };
  if (typeBecause !== undefined) return cut ?? unread(typeBecause);
  if (decodable.has(mime)) {
    const bytes = small ?? (await wholeOf(disk.read(path)));
    const decoded = await decodedSize(bytes);
    if (decoded === "too large") return cut ?? unread("too large to decode");
    const fault = await pictureFault(bytes, mime, decoded);
    if (fault !== null) return { kind: "bad", reason: `${mime} ${fault}` };
    return cut ?? { kind: "media", extension, mime, check: "decoded", ...(await shownSize(bytes)) };
  }
  if (cut !== null) return cut;
  if (readable.has(extension)) return openTracks(disk, path, size, category, { extension, mime });
  return { kind: "media", extension, mime, check: "type" };
}

const headBytes = 4_096;
const tailBytes = 256;

/** Whether a type is that of an XML document, or unknown. */
function isText(type: { mime: string } | undefined): boolean {
  return type === undefined || type.mime === "application/xml";
}

/**
 * An SVG: a document whose outermost element is `svg`, from its beginning to its end. Nothing renders it here: it is a
 * program as much as a picture, and pages show it only as an image.
 */
async function drawingIn(disk: Disk, path: string, size: number): Promise<MediaContent | null> {
  const head = await textOf(disk, path, 0, Math.min(size, headBytes));
  const root = head.replace(/^\ufeff/, "").replace(/^(\s+|<\?[^>]*>|<!--[\s\S]*?-->|<!doctype[^>]*>)+/i, "");
  if (!/^<svg[\s>]/i.test(root)) return null;
  const tail = (await textOf(disk, path, Math.max(0, size - tailBytes), size)).trimEnd();
  return /(<\/svg>|^<svg[^>]*\/>)(\s*<!--[\s\S]*?-->)*$/i.test(tail)
    ? { kind: "media", extension: "svg", mime: "image/svg+xml", check: "type" }
    : { kind: "bad", reason: "image/svg+xml has no end" };
}

function wrongDrawing(category: string): MediaContent {
  return { kind: "bad", reason: `expected ${category}, got image/svg+xml` };
}

async function textOf(disk: Disk, path: string, start: number, end: number): Promise<string> {
  return (await wholeOf(disk.read(path, { start, end }))).toString("utf8");
}

/**
 * What a person takes as it is, although it failed its check for this reason. Its name gets an extension that it is known by,
 * or one that nothing opens: never that of a page or a program, whatever its address says.
 */
export async function acceptedContent(
  disk: Disk,
  path: string,
  url: string,
  because: string,
): Promise<Extract<MediaContent, { kind: "media" }>> {
  const type = await typeOf(Readable.from(disk.read(path), { objectMode: false }));
  const isMedia = type !== undefined && /^(image|video|audio)\//.test(type.mime);
  const [extension, mime] = isMedia ? [type.ext, type.mime] : [extensionIn(url), "application/octet-stream"];
  return { kind: "media", extension, mime, check: "accepted", because };
}

/** Files that come beside media, or that are media which nothing here knows, and that no program runs. */
const harmless = new Set(
  "aac ass bin csv dpx exr glb gltf hdr ies jpg json lrc mid obj pcm pfm ply png ppm psd raw srt stl tga ttml txt usdz vtt wav webp".split(
    " ",
  ),
);

function extensionIn(url: string): string {
  const path = URL.canParse(url) ? new URL(url).pathname : "";
  const [, extension = ""] = /\.([a-z0-9]{1,5})$/i.exec(path) ?? [];
  return harmless.has(extension.toLowerCase()) ? extension.toLowerCase() : "bin";
}

/** First bytes of formats whose type is found at once, and whose decoder works on another thread anyway. */
const beginnings = ["\x89PNG", "\xff\xd8\xff", "RIFF", "GIF8"];

/**
 * Like `inspect`, for a file of `size` bytes (at most `smallBytes`), but only if it is an intact picture that is cheap to
 * decode, so that it cannot block the calling thread. Null for any other file. Rejects with errors of the disk.
 */
export async function inspectSmallPicture(
  disk: Disk,
  path: string,
  size: number,
): Promise<MediaContent | null> {
  const bytes = await wholeOf(disk.read(path, { start: 0, end: size }));
  const head = bytes.toString("latin1", 0, 4);
  if (!beginnings.some((beginning) => head.startsWith(beginning))) return null;
  const type = await typeOf(bytes);
  if (type === undefined || !decodable.has(type.mime)) return null;
  const { ext: extension, mime } = type;
  if ((await missingPart(async (start, end) => bytes.subarray(start, end), size)) !== null) return null;
  if (!(await isSmallAndWhole(bytes, mime))) return null;
  return { kind: "media", extension, mime, check: "decoded", ...(await shownSize(bytes)) };
}

/** Containers made for video may contain only sound; the tracks say which. */
function fits(category: string, media: string): boolean {
  if (category === "audio") return media === "audio" || media === "video";
  if (category === "image" || category === "video") return media === category;
  return true;
}

async function typeOf(content: Buffer | Readable): Promise<{ ext: string; mime: string } | undefined> {
  const { fileTypeFromBuffer, fileTypeFromStream } = await import("file-type");
  if (Buffer.isBuffer(content)) return plain(await fileTypeFromBuffer(content));
  try {
    return plain(await fileTypeFromStream(content));
  } finally {
    content.destroy();
  }
}

/** Without a media type's parameters, such as in `audio/ogg; codecs=opus`. */
function plain(type: { ext: string; mime: string } | undefined): { ext: string; mime: string } | undefined {
  return type && { ext: type.ext, mime: type.mime.replace(/\s*;.*$/, "") };
}

/** What a file that is not media looks like, for the message. */
async function describe(disk: Disk, path: string): Promise<string> {
  const head = (await wholeOf(disk.read(path, { start: 0, end: 512 }))).toString("latin1").trimStart();
  if (/^(<!doctype html|<html|<head|<body)/i.test(head)) return "an HTML page";
  if (/^</.test(head)) return "XML";
  if (/^[[{]/.test(head)) return "JSON";
  return "no known media format";
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
  { extension, mime }: { extension: string; mime: string },
): Promise<MediaContent> {
  const { ALL_FORMATS, CustomSource, EncodedPacketSink, Input } = await import("mediabunny");
  let diskError: unknown;
  const read = async (start: number, end: number) => {
    try {
      return await wholeOf(disk.read(path, { start, end }));
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
    let duration = 0;
    for (const track of tracks) {
      let packets = 0;
      for await (const packet of new EncodedPacketSink(track).packets()) {
        packets++;
        duration = Math.max(duration, packet.timestamp + packet.duration);
      }
      if (packets === 0) return { kind: "bad", reason: `${mime} has an empty ${track.type} track` };
    }
    const film = tracks.find((track) => track.isVideoTrack());
    const soundOnly = category === "audio" && film === undefined;
    return {
      kind: "media",
      extension,
      mime: soundOnly ? mime.replace(/^video/, "audio") : mime,
      check: "packets",
      ...(film && { width: film.displayWidth, height: film.displayHeight }),
      ...(duration > 0 && { duration: Math.round(duration * 1_000) / 1_000 }),
    };
  } catch (error) {
    // An error of the disk says nothing about the file.
    if (diskError !== undefined) throw diskError;
    return { kind: "bad", reason: `${mime} cannot be read: ${oneLine(error)}` };
  } finally {
    input.dispose();
  }
}
