import { createHash } from "node:crypto";
import { keyPrefix } from "../../api/key.js";
import type { Random } from "../../clock.js";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const length = 32;
/** Bytes from here on are passed over: each character has to be as likely as every other. */
const evenBytes = 256 - (256 % alphabet.length);

/** A new key: the prefix and 32 letters or digits, made of the randomness of several UUIDs. */
export function newKeyValue(random: Random): string {
  let characters = "";
  while (characters.length < length) {
    const digest = createHash("sha512").update(`${random.uuid()}${random.uuid()}${random.uuid()}`).digest();
    for (const byte of digest) if (byte < evenBytes) characters += alphabet[byte % alphabet.length];
  }
  return keyPrefix + characters.slice(0, length);
}
