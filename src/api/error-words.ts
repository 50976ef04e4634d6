import { asRecord, parsed, unwrapped } from "./values.js";

export interface ErrorFacts {
  code: string | null;
  message: string | null;
}

/**
 * Code and message of an error body in any of the usual shapes: `error.code`, `code`, or `error` as a string; the message
 * as a text, an object or a list of them.
 */
export function errorFacts(body: unknown): ErrorFacts {
  const top = unwrapped(body);
  const nested = asRecord(top["error"]);
  const code = text(nested["code"]) ?? text(top["code"]) ?? text(top["error"]);
  return { code, message: text(nested["message"]) ?? text(top["message"]) ?? wordsBeside(code, body) };
}

/** Whether a refusal is about one model's queue alone, as a service may say with its 429. */
export function isOfModel(body: unknown): boolean {
  const top = unwrapped(body);
  return (asRecord(top["error"])["scope"] ?? top["scope"]) === "model";
}

/** What an error body says besides its code. */
function wordsBeside(code: string | null, body: unknown): string | null {
  const words = wordsIn(body);
  if (words === null || words === code) return null;
  return words.startsWith(`${code}: `) ? words.slice(`${code}: `.length) : words;
}

/** Fields that have the words of an error, the most telling first. */
const wordFields = [
  "message",
  "msg",
  "detail",
  "details",
  "error_description",
  "description",
  "reason",
  "title",
];
const nestedFields = ["error", "errors"];
const wordsMax = 2_000;
const depthMax = 4;
const piecesMax = 10;

/**
 * The words of an error that may be a text, an object, a list, or JSON in a text; null if there are none. What is an object
 * without a known field of words is given as its JSON.
 */
export function errorWords(error: unknown): string | null {
  const words = wordsIn(error);
  if (words !== null || typeof error !== "object" || error === null) return words;
  return Object.keys(error).length === 0 ? null : JSON.stringify(error).slice(0, wordsMax);
}

function wordsIn(value: unknown, depth = 0): string | null {
  if (depth > depthMax) return null;
  if (typeof value === "string") return wordsOfText(value, depth);
  if (Array.isArray(value))
    return joined(
      value.slice(0, piecesMax).map((piece) => wordsIn(piece, depth + 1)),
      "; ",
    );
  if (typeof value !== "object" || value === null) return null;
  const fields = asRecord(value);
  const found = firstOf([...wordFields, ...nestedFields], (name) => wordsIn(fields[name], depth + 1));
  // Where it is, as in `[{"loc": ["body", "prompt"], "msg": "too long"}]`.
  const place = Array.isArray(fields["loc"])
    ? fields["loc"].filter((part) => typeof part !== "object").join(".")
    : "";
  const named = place === "" ? text(fields["code"]) : place;
  return found === null ? text(fields["code"]) : joined([named, found], ": ");
}

function wordsOfText(value: string, depth: number): string | null {
  const trimmed = value.trim().slice(0, wordsMax);
  if (trimmed === "") return null;
  const inside = /^[[{]/.test(trimmed) ? parsed(value) : null;
  return (inside === null ? null : wordsIn(inside, depth + 1)) ?? trimmed;
}

function firstOf<Found>(names: readonly string[], find: (name: string) => Found | null): Found | null {
  for (const name of names) {
    const found = find(name);
    if (found !== null) return found;
  }
  return null;
}

function joined(pieces: readonly (string | null)[], between: string): string | null {
  const said = pieces.filter((piece) => piece !== null);
  return said.length === 0 ? null : said.join(between).slice(0, wordsMax);
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
