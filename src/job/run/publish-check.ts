import { bucketRefusal } from "../../archive/copies.js";
import { BucketError, bucketTarget } from "../../bucket/bucket.js";
import { EarlyExit } from "../../core/exit.js";
import type { PublishPlace } from "../../publish/publisher.js";
import type { Environment } from "../../text/environment.js";
import { bucketNamed } from "../../workspace/outputs-place.js";

/**
 * Checks that the bucket for local inputs can be reached, before anything is spent on a run that needs it. An address is read
 * by the service alone, and a command cannot be tried without a file. Throws EarlyExit.
 */
export async function checkPublish(place: PublishPlace | null, environment: Environment): Promise<void> {
  const trouble = await publishTrouble(place, environment);
  if (trouble !== null) throw new EarlyExit("usage", `${trouble}. Nothing was submitted.`);
}

/** Why the bucket for local inputs cannot be reached; null if it can, or is none. */
export async function publishTrouble(
  place: PublishPlace | null,
  environment: Environment,
): Promise<string | null> {
  const to = place?.to ?? null;
  if (to === null || bucketTarget(to) === null) return null;
  const over = new AbortController();
  try {
    const refusal = await bucketRefusal(bucketNamed(to, environment, over.signal));
    return refusal === null ? null : `--publish: ${refusal.reason}`;
  } catch (error) {
    if (!(error instanceof BucketError)) throw error;
    return `--publish: ${error.message}`;
  } finally {
    over.abort("ended");
  }
}
