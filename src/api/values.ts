/**
 * The JSON value of a text, or null when it is none. NaN and Infinity, which some services write, are read as null; a
 * byte order mark before the text is no part of it.
 */
export function parseJson(text: string): unknown {
  const json = text.startsWith("\ufeff") ? text.slice(1) : text;
  return parsed(json) ?? parsed(json.replace(notNumbers, "null"));
}

const notNumbers = /(?<=[:[,]\s{0,8})-?(?:NaN|Infinity)(?=\s{0,8}[,}\]])/g;

/** The JSON value of a text as it is; null when it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A number on the wire, which some services send as text; NaN for anything else. */
export function asNumber(value: unknown): number {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^\s*-?\d+(\.\d+)?\s*$/.test(value) ? Number(value) : Number.NaN;
}

/** A value as an object to look into: an empty one when it is something else. */
export function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** A record that came as an object, in a list of one, or as JSON in a text; an empty one for anything else. */
export function unwrapped(value: unknown): Record<string, unknown> {
  const inner = jsonIn(value);
  const one = Array.isArray(inner) ? (inner.length === 1 ? jsonIn(inner[0]) : {}) : inner;
  return Array.isArray(one) ? {} : asRecord(one);
}

/** The list or object that a text is the JSON of; anything else as it is. */
export function jsonIn(value: unknown): unknown {
  return typeof value === "string" && /^\s*[[{]/.test(value) ? (parseJson(value) ?? value) : value;
}
