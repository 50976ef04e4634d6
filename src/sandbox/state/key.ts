import { hash } from "node:crypto";

/**
 * The key of the sandbox's default account. It is public by design: it opens nothing but a sandbox, and being the
 * same everywhere it lets `--sandbox` work without any set-up.
 */
export const sandboxKey = "svc_SANDBOXpublicKEYforLOCALuse00000";

/** The only form in which the sandbox keeps a key. */
export function keyHash(key: string): string {
  return hash("sha256", key);
}
