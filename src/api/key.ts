import { createHash } from "node:crypto";

export const keyPrefix = "svc_";
const keyPattern = /^svc_[A-Za-z0-9]{32}$/;

/**
 * The key of the sandbox's default account. It is public by design: it opens nothing but a sandbox, and being the
 * same everywhere it lets `--sandbox` work without any set-up.
 */
export const sandboxKey = "svc_SANDBOXpublicKEYforLOCALuse00000";

/** Whether a string has the form of an API key: `svc_` and 32 letters or digits. Says nothing of its validity. */
export function isKeyForm(key: string): boolean {
  return keyPattern.test(key);
}

/** The only form of a key that may be stored: the first 16 hex digits of its SHA-256. */
export function fingerprint(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 16);
}

/** Whether a text has an API key in it. */
export function hasKey(text: string): boolean {
  return /svc_[A-Za-z0-9]{32}(?![A-Za-z0-9])/.test(text);
}
