import { bucketRefusal } from "../archive/copies.js";
import { bucketAddress, bucketDisk } from "../archive/disk/bucket-disk.js";
import { jobFolder } from "../archive/disk/names.js";
import { nodeDisk } from "../archive/disk/node-disk.js";
import { type Bucket, BucketError, bucketTarget, openBucket } from "../bucket/bucket.js";
import { EarlyExit } from "../core/exit.js";
import type { RunOptions } from "../core/next/options.js";
import type { Disk } from "../core/ports/disk.js";
import type { Run } from "../core/ports/store.js";
import type { Environment } from "../text/environment.js";

/** Where outputs are, on the disk or in a bucket, and how a command reaches them. */

/** The bucket of a run's files: `s3://bucket/prefix`; null for a run without one. */
export function archiveBucket({ archive, sandbox }: Pick<RunOptions, "archive" | "sandbox">): string | null {
  const target = archive === undefined ? null : bucketTarget(archive);
  if (target === null) return null;
  const { bucket, prefix } = target;
  return `s3://${[bucket, prefix, sandbox ? "sandbox" : ""].filter((part) => part !== "").join("/")}`;
}

/** The place of a run's outputs: the job's folder, or its address in the bucket that alone keeps them. */
export function outputsPlace(run: Pick<Run, "outFolder" | "jobName" | "options">): string {
  const folder = jobFolder(run);
  const bucket = run.options.archiveOnly === true ? archiveBucket(run.options) : null;
  return bucket === null ? folder : bucketAddress(bucket, folder, "");
}

/** Throws BucketError if the environment does not say how to reach it. */
export function bucketNamed(name: string, environment: Environment, signal?: AbortSignal): Bucket {
  const target = bucketTarget(name);
  if (target === null) throw new BucketError(`${name} is not a bucket`, { isForGood: true });
  return openBucket(target, environment, signal);
}

/**
 * The disk of a job's folder whose outputs are in these buckets, to read them there. Throws EarlyExit if the
 * environment does not say how to reach a bucket.
 */
export function diskWith(
  buckets: Iterable<string>,
  jobFolder: string,
  environment: Environment,
  signal?: AbortSignal,
): Disk {
  try {
    let disk = nodeDisk;
    for (const name of new Set(buckets))
      disk = bucketDisk(disk, bucketNamed(name, environment, signal), jobFolder, false);
    return disk;
  } catch (error) {
    throw asUsage(error);
  }
}

/** A bucket that cannot be used, as the end of a command. Other errors stay as they are. */
export function asUsage(error: unknown): unknown {
  return error instanceof BucketError ? new EarlyExit("usage", error.message) : error;
}

/** An open bucket, until its requests are ended. */
export interface Copies {
  bucket: Bucket;
  close(): void;
}

/**
 * Opens the bucket that a run copies its files to, and checks that it can be read, so that a run does not buy what
 * cannot be copied. Null for a run without a bucket. Files of a rehearsal have their own folder in it. Throws
 * EarlyExit.
 */
export async function openCopies(
  options: Pick<RunOptions, "archive" | "archiveOnly" | "sandbox">,
  environment: Environment,
): Promise<Copies | null> {
  const name = archiveBucket(options);
  if (name === null) return null;
  const over = new AbortController();
  const close = () => over.abort("ended");
  try {
    const bucket = bucketNamed(name, environment, over.signal);
    const refusal = await bucketRefusal(bucket);
    if (refusal !== null) throw new BucketError(refusal.reason);
    return { bucket, close };
  } catch (error) {
    close();
    if (error instanceof BucketError) throw new EarlyExit("usage", `--archive: ${error.message}`);
    throw error;
  }
}

/** Throws EarlyExit if a run with these options could not copy its files to its bucket. */
export async function checkCopies(
  options: Pick<RunOptions, "archive" | "sandbox">,
  environment: Environment,
): Promise<void> {
  (await openCopies(options, environment))?.close();
}
