import { join } from "node:path";
import type { Disk } from "../../core/ports/disk.js";
import { wholeOf } from "../../text/pieces.js";
import { folderBelow, linked } from "../disk/names.js";
import { openTemporary } from "../disk/temporary.js";
import { decodedSize } from "./pictures.js";

/** Previews for the gallery. Each is named after the hash of its file, so it is made once and never stale. */
export const previewFolder = "_gallery";

const sideMax = 560;
/**
 * A picture on this disk that is no larger is its own thumbnail, because a smaller one would hardly load sooner. One in a
 * bucket has a thumbnail on this disk.
 */
const lightBytesMax = 256 * 1024;
const lightSideMax = 2 * sideMax;
const lightFormats = new Set(["png", "jpeg", "webp"]);

export interface Thumbnail {
  /** Relative to the job's folder; the picture itself, if it is light. */
  file: string;
  width: number;
  height: number;
}

/** The thumbnail of a picture of the archive; null when it cannot be read. Rejects with errors of the disk. */
export async function thumbnailOf(
  disk: Disk,
  jobFolder: string,
  { file, sha256 }: { file: string; sha256: string },
): Promise<Thumbnail | null> {
  const name = thumbnailName(sha256);
  const known = await measured(disk, join(jobFolder, name));
  if (known !== null) return { file: name, ...known };
  const path = join(jobFolder, file);
  if ((await disk.size(path)) === null) return null;
  const picture = await wholeOf(disk.read(path));
  const isInBucket = (await disk.inBucket?.(path)) != null;
  const light = isInBucket ? null : await sizeIfLight(picture);
  if (light !== null) return { file, ...light };
  const small = await shrunk(picture);
  if (small === null) return null;
  await keepPreview(disk, jobFolder, name, small.data);
  return { file: name, width: small.info.width, height: small.info.height };
}

async function sizeIfLight(bytes: Buffer): Promise<{ width: number; height: number } | null> {
  if (bytes.length > lightBytesMax) return null;
  const { default: sharp } = await import("sharp");
  const facts = await sharp(bytes)
    .metadata()
    .catch(() => null);
  if (facts === null || !lightFormats.has(facts.format) || (facts.pages ?? 1) > 1) return null;
  const { width, height } = facts.autoOrient;
  return Math.max(width, height) <= lightSideMax ? { width, height } : null;
}

async function shrunk(bytes: Buffer) {
  if ((await decodedSize(bytes)) === "too large") return null;
  const { default: sharp } = await import("sharp");
  const picture = sharp(bytes, { sequentialRead: true }).autoOrient();
  const small = picture.resize(sideMax, sideMax, { fit: "inside", withoutEnlargement: true });
  return (
    small
      // More effort takes three times as long, for a third fewer bytes.
      .webp({ quality: 78, effort: 0 })
      .timeout({ seconds: 30 })
      .toBuffer({ resolveWithObject: true })
      .catch(() => null)
  );
}

async function measured(disk: Disk, path: string): Promise<{ width: number; height: number } | null> {
  if ((await disk.size(path)) === null) return null;
  const { default: sharp } = await import("sharp");
  return sharp(await wholeOf(disk.read(path)))
    .metadata()
    .then(({ width, height }) => ({ width, height }))
    .catch(() => null);
}

/** The path of a picture's thumbnail, relative to the job's folder. */
export function thumbnailName(sha256: string): string {
  return `${previewFolder}/${sha256.slice(0, 32)}.webp`;
}

/** The names that `thumbnailName` gives, without their folder. */
export const thumbnailNames = /^[0-9a-f]{32}\.webp$/;

/** Saves a preview. An existing file of that name was made from the same content. */
async function keepPreview(disk: Disk, jobFolder: string, name: string, bytes: Uint8Array): Promise<void> {
  const folder = await folderBelow(disk, jobFolder, previewFolder);
  const path = join(jobFolder, name);
  const temporary = await openTemporary(disk, folder, `preview ${path}`);
  try {
    await temporary.file.write(bytes);
    // A preview is never made again, so one that a power cut left empty would stay empty.
    await temporary.file.sync();
    await linked(disk, temporary.path, path);
  } finally {
    await temporary.discard();
  }
}
