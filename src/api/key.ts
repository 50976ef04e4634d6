import { createHash } from "node:crypto";

export const keyPrefix = "svc_";
const wholeKey = /^svc_[A-Za-z0-9]{32}$/;

/**
 * The key of the sandbox's default account. It is public by design: it opens nothing but a sandbox, and being the
 * same everywhere it lets `--sandbox` work without any set-up.
 */
export const sandboxKey = "svc_SANDBOXpublicKEYforLOCALuse00000";

/** Whether a string has the form of an API key: `svc_` and 32 letters or digits. Says nothing of its validity. */
export function isKeyForm(key: string): boolean {
  return wholeKey.test(key);
}

/** The only form of a key that may be stored: the first 16 hex digits of its SHA-256. */
export function fingerprint(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 16);
}

/** Whether a text has an API key in it. */
export function hasKey(text: string): boolean {
  return /svc_[A-Za-z0-9]{32}(?![A-Za-z0-9])/.test(text);
}

/** What stands in the place of a key. */
export const redaction = "[API key]";

/** A text without what looks like an API key, whole or in part: people type theirs where it does not belong. */
export function withoutKeys(text: string): string {
  return text.replace(/svc_[A-Za-z0-9]{8,}/g, redaction);
}

/** Stands between two characters of a text without being seen: control and format characters, as themselves or in JSON. */
const unseen = String.raw`(?:\\u001[bB]\[[0-?]*[ -/]*[@-~]|\\u(?!00[3-7])[0-9a-fA-F]{4}|\\[bfnrt]|\u001b\[[0-?]*[ -/]*[@-~]|[\p{Cc}\p{Cf}\p{M}\s])*`;

/** How many letters of a secret a text must have, one after the other, to be searched for all of it. */
const lettersSearchedFirst = 4;

/**
 * Takes one key out of texts, also where characters that nobody sees stand in it, or where JSON spells its letters by numbers:
 * they are gone when the text is shown. The part after `svc_` is the secret. The whole pattern takes V8 12 ms to compile, so
 * it is used only on a text that has the first letters of the secret.
 */
export function keyRemover(key: string): (text: string) => string {
  const secret = key.replace(/^svc_/, "") || key;
  const start = new RegExp(spelled(secret.slice(0, lettersSearchedFirst)), "u");
  const whole = new RegExp(`(?:${spelled("svc_")}${unseen})?${spelled(secret)}`, "gu");
  return (text) => (start.test(text) ? text.replace(whole, redaction) : text);
}

function spelled(text: string): string {
  const letters = [...text].map((letter) => {
    const code = (letter.codePointAt(0) ?? 0).toString(16).padStart(4, "0");
    const cased = code.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
    return String.raw`(?:${letter.replace(/[^\w]/g, "\\$&")}|\\u${cased})`;
  });
  return letters.join(unseen);
}
