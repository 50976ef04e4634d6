import { bucketRefusal } from "../../archive/copies.js";
import { type Bucket, BucketError } from "../../bucket/bucket.js";
import { EarlyExit } from "../../core/exit.js";
import type { RunOptions } from "../../core/next/options.js";
import type { Environment } from "../../text/environment.js";
import { archiveBucket, bucketNamed } from "../workspace/outputs-place.js";

/** An open bucket, until its requests are ended. */
export interface Copies {
  bucket: Bucket;
  close(): void;
}

/**
 * Opens the bucket that a run copies its files to, and looks into it, so that a run does not buy what cannot be copied.
 * Null for a run without one. A rehearsal's files have a folder of their own in it. Throws EarlyExit.
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
