import { databaseAddress } from "../store/postgres/address.js";

/**
 * The value of a flag for people, without its secrets: the path of a webhook address, and the password of a mail server
 * or a database.
 */
export function shownValue(name: string, words: readonly string[]): string {
  if (name === "database-url") return words.map(withoutPassword).join(", ");
  if (name !== "notify" && name !== "smtp-url") return words.join(", ");
  return words.map((word) => (word.startsWith("$") ? word : hostOf(word))).join(", ");
}

function withoutPassword(word: string): string {
  try {
    return databaseAddress(word, { sandbox: false }).shown;
  } catch {
    return "…";
  }
}

function hostOf(word: string): string {
  if (word.startsWith("mailto:")) return word.slice("mailto:".length);
  if (word.startsWith("{")) {
    const { url, email } = targetIn(word);
    if (typeof email === "string") return email;
    return typeof url === "string" && !url.startsWith("{") ? hostOf(url) : "…";
  }
  return URL.canParse(word) ? new URL(word).host : word.startsWith("$") ? word : "…";
}

/** Text that is not JSON has neither; the command that notifies refuses it. */
function targetIn(word: string): { url?: unknown; email?: unknown } {
  try {
    return JSON.parse(word) as { url?: unknown; email?: unknown };
  } catch {
    return {};
  }
}
