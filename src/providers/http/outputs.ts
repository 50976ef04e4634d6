import type { JobOutput, Json } from "../provider.js";
import { find } from "./query.js";
import { type AnswerWithJson, isMedia } from "./verdict.js";

/**
 * The files that an answer names or contains: addresses, paths of the server at `asked`, data: addresses, base64, or the answer
 * itself. Null if it has none of them where they were expected; an empty list if it says itself that there are none.
 */
export function outputsOf(
  answer: AnswerWithJson,
  query: string | undefined,
  asked: string,
): JobOutput[] | null {
  if (isMedia(answer)) return [{ bytes: answer.body }];
  if (query === undefined) return null;
  const found = find(answer.json, query);
  if (found === null) return null;
  const outputs = [found].flat().map((value) => outputOf(value, asked));
  return outputs.every((output) => output !== null) ? outputs : null;
}

function outputOf(value: Json, asked: string): JobOutput | null {
  if (typeof value !== "string") return null;
  if (/^https?:\/\//.test(value)) return URL.canParse(value) ? { url: value } : null;
  // The base64 of a JPEG begins with a slash, too, but has no file's extension.
  if (/^\/[^\s?#]*\.\w+(\?\S*)?$/.test(value)) return { url: new URL(value, asked).href };
  const data = /^data:[^,]*?(;base64)?,/i.exec(value);
  if (data === null) return fromBase64(value);
  const rest = value.slice(data[0].length);
  if (data[1] !== undefined) return fromBase64(rest);
  try {
    return { bytes: Buffer.from(decodeURIComponent(rest)) };
  } catch {
    return null;
  }
}

function fromBase64(text: string): JobOutput | null {
  const compact = text.replace(/\s+/g, "");
  if (compact.length < 4 || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(compact)) return null;
  return { bytes: Buffer.from(compact, "base64") };
}
