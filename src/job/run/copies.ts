import { bucketRefusal } from "../../archive/copies.js";
import { type Bucket, BucketError, bucketTarget, openBucket } from "../../bucket/bucket.js";
import { EarlyExit } from "../../core/exit.js";
import type { RunOptions } from "../../core/next/options.js";

type Environment = Readonly<Record<string, string | undefined>>;

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
  { archive, sandbox }: Pick<RunOptions, "archive" | "sandbox">,
  environment: Environment,
): Promise<Copies | null> {
  const target = archive === undefined ? null : bucketTarget(archive);
  if (target === null) return null;
  const over = new AbortController();
  const close = () => over.abort("ended");
  try {
    const prefix = sandbox
      ? [target.prefix, "sandbox"].filter((part) => part !== "").join("/")
      : target.prefix;
    const bucket = openBucket({ ...target, prefix }, environment, over.signal);
    const refusal = await bucketRefusal(bucket);
    if (refusal !== null) throw new BucketError(refusal.reason);
    return { bucket, close };
  } catch (error) {
    close();
    if (error instanceof BucketError) throw new EarlyExit("usage", `--archive: ${error.message}`);
    throw error;
  }
}
