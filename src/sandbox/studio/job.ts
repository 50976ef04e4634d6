import { createHash } from "node:crypto";
import { mediaFields } from "../../api/inputs.js";
import type { Maker } from "../catalogue/model.js";

/** One output to make, complete in itself: it travels to a worker thread and needs nothing else. */
export interface MediaJob {
  maker: Maker;
  model: string;
  /** The longer side (px) of the picture or film, instead of the usual one. */
  longSide?: number | undefined;
  /** Prompt and params, as the task shows them. */
  input: Readonly<Record<string, string>>;
  /** The fetched media by field. */
  media: Readonly<Record<string, Uint8Array>>;
  /** SHA-256 in hex; the same request makes the same bytes. */
  seed: string;
  extension: string;
}

/** The seed of a request. Media count by their content, because their URLs are signed again each time. */
export function seedOf(
  model: string,
  input: Readonly<Record<string, string>>,
  media: Readonly<Record<string, Uint8Array>>,
): string {
  const words = Object.entries(input).filter(([key]) => !(mediaFields as readonly string[]).includes(key));
  const contents = Object.entries(media).map(([key, bytes]) => [key, sha256(bytes)]);
  return sha256(JSON.stringify([model, words.sort(byKey), contents.sort(byKey)]));
}

/**
 * What all tasks of one request have in common: their signed addresses differ each time. Null if its seed is fixed, so that it makes
 * the same each time; `usualSeed` is what a task has that was given none.
 */
export function alikeOf(
  model: string,
  input: Readonly<Record<string, string>>,
  usualSeed: string | undefined,
): string | null {
  const { seed = "" } = input;
  if (seed !== "" && seed !== usualSeed) return null;
  const plain = Object.entries(input).map(([key, value]) => [
    key,
    (mediaFields as readonly string[]).includes(key) ? value.replace(/[?#].*$/s, "") : value,
  ]);
  return sha256(JSON.stringify([model, plain.sort(byKey)]));
}

export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

function byKey(left: string[], right: string[]): number {
  return (left[0] ?? "") < (right[0] ?? "") ? -1 : 1;
}
