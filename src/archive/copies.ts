import { createHash } from "node:crypto";
import { basename, join, posix } from "node:path";
import type { Bucket } from "../bucket/bucket.js";
import type { Disk } from "../core/ports/disk.js";
import { sha256Of } from "../text/pieces.js";
import { folderBelow } from "./disk/names.js";
import { type DiskRefusal, refusalOf } from "./disk/space.js";
import { openTemporary, temporaryNameOf } from "./disk/temporary.js";
import type { KnownFile } from "./examine.js";
import { indexName } from "./index-file.js";
import type { Archive, ReceivedFile } from "./save.js";

/** Copies of the archive's files in a bucket, under the same names as in the output folder. */

/** The key of a file of a job's folder. */
export function copyKey(jobFolder: string, file: string): string {
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
      return refusalOf(error, request.jobFolder);
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

/**
 * Moves a file that this host has received to the bucket. Its temporary name is made from the lease, so that another host
 * that was given the same job cannot replace it. Rejects with BucketError.
 */
export async function handToBucket(
  { disk, bucket, jobFolder, lease }: { disk: Disk; bucket: Bucket; jobFolder: string; lease: string },
  received: ReceivedFile,
): Promise<ReceivedFile> {
  const { bytes, sha256, content } = received;
  const path = join(jobFolder, received.temporary);
  const temporary = posix.join(posix.dirname(received.temporary), temporaryNameOf(lease, 1));
  try {
    await bucket.put(copyKey(jobFolder, temporary), { path, bytes, sha256, mime: content.mime });
    return { ...received, temporary };
  } finally {
    await disk.unlink(path).catch(() => undefined);
  }
}

/** Removes a file that was moved to the bucket and is no longer wanted. */
export async function dropFromBucket(
  bucket: Bucket,
  jobFolder: string,
  { temporary }: ReceivedFile,
): Promise<void> {
  await bucket.remove(copyKey(jobFolder, temporary)).catch(() => undefined);
}

/** Copies the index, as it is now. Rejects with BucketError. */
export async function copyIndex(disk: Disk, bucket: Bucket, jobFolder: string): Promise<void> {
  const path = join(jobFolder, indexName);
  const bytes = await disk.size(path);
  if (bytes === null) return;
  const sha256 = await sha256Of(disk.read(path));
  await bucket.put(copyKey(jobFolder, indexName), { path, bytes, sha256, mime: "application/jsonl" });
}

/** Why the bucket takes no files now; null if it can be read. Rethrows errors that are not the bucket's. */
export async function bucketRefusal(bucket: Bucket): Promise<DiskRefusal | null> {
  return bucket.find(indexName).then(
    () => null,
    (error: unknown) => refusalOf(error, bucket.name),
  );
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
  if (!reads || (await sha256Of(bucket.read(key))) === known.sha256) return null;
  return `${bucket.name} has damaged content`;
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
