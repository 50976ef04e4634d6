import type { Run } from "../core/ports/store.js";
import { contentHash } from "../manifest/content-hash.js";

/** Whether the manifest's file holds something else than when the run read it. False where that is not known, or it is gone. */
export async function hasChanged({ manifest, options }: Run): Promise<boolean> {
  if (options.manifestSha256 === undefined) return false;
  const now = await contentHash(manifest);
  return now !== null && now !== options.manifestSha256;
}
