import { join } from "node:path";
import type { Disk } from "../../core/ports/disk.js";
import { wholeOf } from "../../text/pieces.js";
import { folderBelow, linked } from "../disk/names.js";
import { openTemporary } from "../disk/temporary.js";
import { decodedSize } from "./pictures.js";

/** Previews for the gallery. Each is named after the hash of its file, so it is made once and never stale. */
const previewFolder = "_gallery";

const sideMax = 560;

export interface Thumbnail {
  /** Relative to the job's folder. */
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
  const name = previewName(sha256, "webp");
  const known = await measured(disk, join(jobFolder, name));
  if (known !== null) return { file: name, ...known };
  const bytes = await shrunk(disk, join(jobFolder, file));
  if (bytes === null) return null;
  await keepPreview(disk, jobFolder, name, bytes);
  const size = await measured(disk, join(jobFolder, name));
  return size === null ? null : { file: name, ...size };
}

async function shrunk(disk: Disk, path: string): Promise<Buffer | null> {
  if ((await disk.size(path)) === null) return null;
  const { default: sharp } = await import("sharp");
  const bytes = await wholeOf(disk.read(path));
  if ((await decodedSize(bytes)) === "too large") return null;
  const picture = sharp(bytes, { sequentialRead: true }).autoOrient();
  const small = picture.resize(sideMax, sideMax, { fit: "inside", withoutEnlargement: true });
  return small
    .webp({ quality: 78 })
    .timeout({ seconds: 30 })
    .toBuffer()
    .catch(() => null);
}

async function measured(disk: Disk, path: string): Promise<{ width: number; height: number } | null> {
  if ((await disk.size(path)) === null) return null;
  const { default: sharp } = await import("sharp");
  return sharp(await wholeOf(disk.read(path)))
    .metadata()
    .then(({ width, height }) => ({ width, height }))
    .catch(() => null);
}

/** The path of a file's preview, relative to the job's folder. */
export function previewName(sha256: string, extension: string): string {
  return `${previewFolder}/${sha256.slice(0, 32)}.${extension}`;
}

/** Saves a preview. An existing file of that name was made from the same content. */
export async function keepPreview(
  disk: Disk,
  jobFolder: string,
  name: string,
  bytes: Uint8Array,
): Promise<void> {
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
