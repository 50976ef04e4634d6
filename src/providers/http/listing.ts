import type { Json, JsonObject } from "../provider.js";
import { find } from "./query.js";

/** Whether a listed job has what the request has; null if nothing tells, or what would tell is gone from the list. */
export function fitOf(
  entry: Json,
  request: JsonObject,
  match: Readonly<Record<string, string>>,
): boolean | null {
  let fit: true | null = null;
  let isUnclear = false;
  for (const [there, here] of Object.entries(match)) {
    const wanted = find(request, here);
    if (wanted === null) continue;
    const given = find(entry, there);
    const isGone = given === null || (isEmpty(given) && !isEmpty(wanted));
    if (isGone) isUnclear = true;
    else if (contains(given, wanted)) fit = true;
    else return false;
  }
  return isUnclear ? null : fit;
}

function isEmpty(value: Json): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** Whether all that was sent is there. A vendor may add its defaults, and put an address in place of bytes. */
function contains(given: Json, wanted: Json): boolean {
  if (typeof wanted === "string") return wanted === given || wanted.startsWith("data:");
  if (typeof wanted !== "object" || wanted === null) return wanted === given;
  if (typeof given !== "object" || given === null || Array.isArray(given) !== Array.isArray(wanted))
    return false;
  if (Array.isArray(given) && Array.isArray(wanted) && given.length !== wanted.length) return false;
  return Object.entries(wanted).every(([name, one]) =>
    contains((given as JsonObject)[name] ?? null, one as Json),
  );
}

/** A time as ISO 8601 or as seconds since 1970, in milliseconds; null if it is none. */
export function timeOf(value: Json): number | null {
  const time = typeof value === "number" ? value * 1000 : Date.parse(String(value));
  return Number.isNaN(time) ? null : time;
}
