import { createHash } from "node:crypto";

export const keyPrefix = "svc_";
const keyPattern = /^svc_[A-Za-z0-9]{32}$/;

/** Whether a string has the form of an API key: `svc_` and 32 letters or digits. Says nothing of its validity. */
export function isKeyForm(key: string): boolean {
  return keyPattern.test(key);
}

/** The only form of a key that may be stored: the first 16 hex digits of its SHA-256. */
export function fingerprint(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 16);
}
