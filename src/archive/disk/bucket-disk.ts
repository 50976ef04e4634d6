import { basename, posix, relative, sep } from "node:path";
import type { Bucket } from "../../bucket/bucket.js";
import type { Disk } from "../../core/ports/disk.js";

/**
 * A disk that keeps the files of a job's folder in a bucket, under the same names. A file stays on this disk until it gets
 * its final name: then it is uploaded, and counts once the bucket has confirmed its size and hash. A file that is in the
 * bucket already, because a worker uploaded it, gets its name by a copy within the bucket. Files on this disk are found
 * as before; the index, pages and previews are always here.
 */
export function bucketDisk(disk: Disk, bucket: Bucket, jobFolder: string, takesFiles: boolean): Disk {
  const keyOf = (path: string): string | null => {
    const below = relative(jobFolder, path).split(sep).join("/");
    const isOwn = below === "" || below.startsWith("..") || ownNames.has(below);
    return isOwn ? null : posix.join(basename(jobFolder), below);
  };
  const isHere = async (path: string) => (await disk.size(path)) !== null;
  const isFree = async (path: string, key: string) => {
    if ((await isHere(path)) || (await bucket.find(key)) !== null)
      throw Object.assign(new Error(`${path} exists`), { code: "EEXIST" });
  };
  return {
    ...disk,
    async link(from, to, content) {
      const [source, target] = [keyOf(from), keyOf(to)];
      const isLocal = await isHere(from);
      if (target === null || source === null || (isLocal && (!takesFiles || content === undefined)))
        return disk.link(from, to);
      await isFree(to, target);
      if (isLocal && content !== undefined) await bucket.put(target, { path: from, ...content });
      else await bucket.copy(source, target);
    },
    async unlink(path) {
      const key = keyOf(path);
      if (key === null || (await isHere(path))) return disk.unlink(path);
      await bucket.remove(key);
    },
    async size(path) {
      const key = keyOf(path);
      return (await disk.size(path)) ?? (key === null ? null : ((await bucket.find(key))?.bytes ?? null));
    },
    async inBucket(path) {
      const other = await disk.inBucket?.(path);
      if (other) return other;
      const key = keyOf(path);
      const found = key === null || (await isHere(path)) ? null : await bucket.find(key);
      return found && { bucket: bucket.name, ...found };
    },
    async list(path) {
      const key = path === jobFolder ? basename(jobFolder) : keyOf(path);
      const here = await disk.list(path);
      return key === null ? here : [...new Set([...here, ...(await bucket.list(key))])];
    },
    async *read(path, range) {
      const key = keyOf(path);
      if (key === null || (await isHere(path))) yield* disk.read(path, range);
      else yield* bucket.read(key, range);
    },
    async syncFolder(path) {
      // The folder of a file that another host has uploaded may not be here.
      await disk.syncFolder(path).catch((error: { code?: unknown }) => {
        if (error.code !== "ENOENT") throw error;
      });
    },
  };
}

/** Names in a job's folder that are never in the bucket alone. */
const ownNames: ReadonlySet<string> = new Set(["index.jsonl", "gallery.html", "picked.html", "problems.csv"]);

/** Where a file of a job's folder is in a bucket: `s3://bucket/prefix/JOB/FILE`. */
export function bucketAddress(bucket: string, jobFolder: string, file: string): string {
  return `${bucket}/${posix.join(basename(jobFolder), file)}`;
}
