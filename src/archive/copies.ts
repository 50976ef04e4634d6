import { createHash } from "node:crypto";
import { basename, join, posix } from "node:path";
import { type Bucket, BucketError } from "../bucket/bucket.js";
import type { Disk } from "../core/ports/disk.js";
import { folderBelow } from "./disk/names.js";
import type { DiskRefusal } from "./disk/space.js";
import { openTemporary } from "./disk/temporary.js";
import type { KnownFile } from "./examine.js";
import type { Archive } from "./save.js";

/** Copies of the archive's files in a bucket, under the same names as in the output folder. */

function copyKey(jobFolder: string, file: string): string {
  return posix.join(basename(jobFolder), file);
}

/** Saves as `save` does, and then copies each file to the bucket: a file counts as saved when both have it. */
export function savingCopies(save: Archive["save"], bucket: Bucket): Archive["save"] {
  return async (request, signal) => {
    const result = await save(request, signal);
    if (result.kind !== "saved") return result;
    try {
      await copyTo(bucket, request.jobFolder, result);
      return result;
    } catch (error) {
      return refusalOfBucket(error);
    }
  };
}

/** Copies a file of the archive. Rejects with BucketError. */
export async function copyTo(
  bucket: Bucket,
  jobFolder: string,
  { file, bytes, sha256, mime }: { file: string; bytes: number; sha256: string; mime: string },
): Promise<void> {
  await bucket.put(copyKey(jobFolder, file), { path: join(jobFolder, file), bytes, sha256, mime });
}

/** Why the bucket takes no files now; null where it can be read. Rethrows other errors than the bucket's. */
export async function bucketRefusal(bucket: Bucket): Promise<DiskRefusal | null> {
  return bucket.find("index.jsonl").then(() => null, refusalOfBucket);
}

function refusalOfBucket(error: unknown): DiskRefusal {
  if (!(error instanceof BucketError)) throw error;
  return { kind: "disk", code: "BUCKET", reason: error.message };
}

/** What is wrong with the copy of a file; null when the bucket has it. Rejects with BucketError. */
export async function copyFault(
  bucket: Bucket,
  jobFolder: string,
  known: KnownFile,
  reads: boolean,
): Promise<string | null> {
  const key = copyKey(jobFolder, known.file);
  const found = await bucket.find(key);
  if (found === null) return `${bucket.name} does not have it`;
  if (found.bytes !== known.bytes || found.sha256 !== known.sha256) return `${bucket.name} has other content`;
  if (!reads || (await hashOf(bucket.read(key))) === known.sha256) return null;
  return `${bucket.name} has damaged content`;
}

async function hashOf(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}

/** Brings a file back from its copy; false when the bucket has no good one. Rejects with errors of disk and bucket. */
export async function restoreFromCopy(
  disk: Disk,
  bucket: Bucket,
  jobFolder: string,
  { file, identity, sha256, bytes }: KnownFile,
): Promise<boolean> {
  const key = copyKey(jobFolder, file);
  const found = await bucket.find(key);
  if (found?.bytes !== bytes || found.sha256 !== sha256) return false;
  const folder = await folderBelow(disk, jobFolder, posix.dirname(file));
  const temporary = await openTemporary(disk, folder, identity);
  try {
    const hash = createHash("sha256");
    for await (const piece of bucket.read(key)) {
      hash.update(piece);
      await temporary.file.write(piece);
    }
    if (hash.digest("hex") !== sha256) return false;
    await temporary.file.sync();
    await disk.link(temporary.path, join(jobFolder, file));
    return true;
  } finally {
    await temporary.abandon();
  }
}
