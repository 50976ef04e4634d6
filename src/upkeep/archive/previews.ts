import { join } from "node:path";
import { z } from "zod";
import { loudnessOf, slices } from "../../archive/check/loudness.js";
import {
  previewFolder,
  type Thumbnail,
  thumbnailName,
  thumbnailNames,
  thumbnailOf,
} from "../../archive/check/thumbnail.js";
import { folderBelow, removeName } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import type { ArchivedOutput } from "../../core/ports/store.js";
import { wholeOf } from "../../text/pieces.js";
import { writeWhole } from "../../whole-file.js";

/**
 * What the gallery shows of each file before it is opened. Thumbnails are files beside the pictures; their sizes, and the
 * outlines of sounds, are kept in one file, by the hash of the content, so that a second gallery opens no file again.
 */
export interface Preview {
  thumbnail: Thumbnail | null;
  /** The outline of a sound, from 0 to 100. */
  loudness: readonly number[] | null;
}

const listName = "previews.json";

const percent = z.number().int().min(0).max(100);
const kept = z.strictObject({
  /** Null for a sound. A picture is its own thumbnail if it is light. */
  thumbnail: z
    .strictObject({ isOwn: z.boolean(), width: z.number().positive(), height: z.number().positive() })
    .nullable(),
  loudness: z.array(percent).length(slices).nullable(),
});
type Kept = z.infer<typeof kept>;

export interface Previews {
  /** The preview of a file, made now if none was kept. Rejects with errors of the disk. */
  of(output: ArchivedOutput): Promise<Preview>;
  /** Keeps the previews of these files, which are all of the folder, and removes those of other files. */
  keep(outputs: readonly ArchivedOutput[]): Promise<void>;
}

/** The previews of a job's folder. */
export async function openPreviews(folder: string): Promise<Previews> {
  const known = await readKept(folder);
  const before = JSON.stringify([...known]);
  const thumbnails = new Set(await nodeDisk.list(join(folder, previewFolder)));
  return {
    async of(output) {
      const old = known.get(output.sha256);
      if (old !== undefined && isThere(output, old)) return shown(output, old);
      const preview = await made(folder, output);
      if (preview.thumbnail === null && preview.loudness === null) known.delete(output.sha256);
      else known.set(output.sha256, keptOf(output, preview));
      return preview;
    },
    async keep(outputs) {
      const hashes = new Set(outputs.map(({ sha256 }) => sha256));
      for (const hash of known.keys()) if (!hashes.has(hash)) known.delete(hash);
      const used = new Set([...hashes].map((hash) => thumbnailName(hash).slice(previewFolder.length + 1)));
      const unused = [...thumbnails].filter((name) => thumbnailNames.test(name) && !used.has(name));
      if (unused.length === 0 && JSON.stringify([...known]) === before) return;
      const previews = await folderBelow(nodeDisk, folder, previewFolder);
      for (const name of unused) await removeName(nodeDisk, join(previews, name));
      await writeWhole(join(previews, listName), JSON.stringify(Object.fromEntries(known)));
    },
  };

  function isThere({ sha256 }: ArchivedOutput, { thumbnail }: Kept): boolean {
    return (
      thumbnail === null ||
      thumbnail.isOwn ||
      thumbnails.has(thumbnailName(sha256).slice(previewFolder.length + 1))
    );
  }
}

async function made(folder: string, output: ArchivedOutput): Promise<Preview> {
  const { file, mime } = output;
  return {
    thumbnail: mime.startsWith("image/") ? await thumbnailOf(nodeDisk, folder, output) : null,
    loudness: mime.startsWith("audio/") ? await loudnessOf(nodeDisk, join(folder, file)) : null,
  };
}

function keptOf({ file }: ArchivedOutput, { thumbnail, loudness }: Preview): Kept {
  if (thumbnail === null) return { thumbnail, loudness: loudness && [...loudness] };
  const { width, height } = thumbnail;
  return { thumbnail: { isOwn: thumbnail.file === file, width, height }, loudness: null };
}

function shown({ file, sha256 }: ArchivedOutput, { thumbnail, loudness }: Kept): Preview {
  if (thumbnail === null) return { thumbnail, loudness };
  const { isOwn, width, height } = thumbnail;
  return { thumbnail: { file: isOwn ? file : thumbnailName(sha256), width, height }, loudness };
}

/** What was kept; nothing of what is damaged, or was made by another version. */
async function readKept(folder: string): Promise<Map<string, Kept>> {
  try {
    const text = (await wholeOf(nodeDisk.read(join(folder, previewFolder, listName)))).toString("utf8");
    return new Map(Object.entries(z.record(z.string(), kept).parse(JSON.parse(text))));
  } catch {
    return new Map();
  }
}
