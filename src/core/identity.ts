import { createHash, hash } from "node:crypto";
import type { MediaField } from "../api/inputs.js";
import type { Credits } from "./money.js";

/**
 * What makes two generations the same one. The key says whether something was already asked for, and thereby whether
 * it is paid again, so it ignores what people do not see (composed or decomposed accents, Windows line ends, spaces
 * at the ends, an empty cell against a missing one, `5` against `"5"`) and nothing else.
 */
/** The origin of the models of a file, whichever file it is: their workspaces are told apart by their users. */
export const ownModelsOrigin = "models";

export interface Identity {
  /** Origin of the service's base address. */
  origin: string;
  /** The service's user id. */
  account: string;
  model: string;
  prompt: string | null;
  params: Readonly<Record<string, string | number | boolean | null | undefined>>;
  /** A URL as written, `sha256:…` of a local file's content, or what `outputOf` says. */
  inputs: Readonly<Partial<Record<MediaField, string>>>;
  /** 1 for the first of several identical rows, 2 for the second. */
  occurrence: number;
  /** The job's edition; the empty text for the first one. */
  edition: string;
}

/** The item key: `k1:` and the SHA-256 of the identity as canonical JSON. `k1` names these rules. */
export function itemKey(identity: Identity): string {
  return itemKeys(identity)(identity);
}

/** Keys of one job's items: what they have in common is written once for all of them. */
export function itemKeys({
  origin,
  account,
  edition,
}: Pick<Identity, "origin" | "account" | "edition">): (
  item: Omit<Identity, "origin" | "account" | "edition">,
) => string {
  const json = (text: string) => JSON.stringify(normalText(text));
  const start = `{"account":${json(account)},"edition":${json(edition)},"inputs":`;
  const middle = `,"origin":${json(origin)},"params":`;
  const last = { model: "", json: json("") };
  const paramsJson = entriesJson();
  return ({ model, prompt, params, inputs, occurrence }) => {
    const text = normalText(prompt ?? "");
    if (model !== last.model) Object.assign(last, { model, json: json(model) });
    const item = `${JSON.stringify(normalEntries(inputs))},"model":${last.json},"occurrence":${occurrence}`;
    const said = text === "" ? "" : `,"prompt":${JSON.stringify(text)}`;
    return `k1:${hash("sha256", `${start}${item}${middle}${paramsJson(params)}${said}}`, "hex")}`;
  };
}

const keptMax = 1_000;

/** Entries as JSON, written once for each of the first objects: many items share one, which is never changed. */
function entriesJson(): (values: Readonly<Record<string, unknown>>) => string {
  const kept = new Map<object, string>();
  return (values) => {
    const known = kept.get(values);
    if (known !== undefined) return known;
    const json = JSON.stringify(normalEntries(values));
    if (kept.size < keptMax) kept.set(values, json);
    return json;
  };
}

/** The key of a variant that a redo makes of a row's own item, from 2. */
export function variantKey(key: string, variant: number): string {
  return `k1:${createHash("sha256")
    .update(JSON.stringify({ of: key, variant }))
    .digest("hex")}`;
}

/** How identity counts an input that is another item's output: its signed URL differs at each poll. */
export function outputOf({ key, output }: { key: string; output: number }): string {
  return `output ${output} of ${key}`;
}

/** The first ten hex digits of a key: the id of a row that has none. */
export function shortId(key: string): string {
  return key.slice(key.indexOf(":") + 1).slice(0, 10);
}

/** The range of texts in which the keys with this short id are; empty if it is not a short id. */
export function keysWith(short: string): { prefix: string; end: string } {
  const prefix = /^[0-9a-f]{10}$/.test(short) ? `k1:${short}` : "";
  // After every hexadecimal digit.
  return { prefix, end: prefix === "" ? "" : `${prefix}g` };
}

/** A text, normalised for the key. */
export function normalText(text: string): string {
  const lines = text.includes("\r\n") ? text.replaceAll("\r\n", "\n") : text;
  // Every character up to here is composed. Nearly every text has no other, and this test is faster than normalising.
  return (/[^\0-\u02ff]/.test(lines) ? lines.normalize("NFC") : lines).trim();
}

/** Params, normalised for the key: sorted pairs of normalised text, without empty ones. */
function itemParams(params: Readonly<Record<string, unknown>>): [string, string][] {
  return normalEntries(params);
}

/** Pairs, not an object: an object would move keys that look like numbers, and lose one that is `__proto__`. */
function normalEntries(values: Readonly<Record<string, unknown>>): [string, string][] {
  const entries: [string, string][] = [];
  for (const name in values) {
    const value = values[name];
    if (value === null || value === undefined) continue;
    const text = normalText(String(value));
    if (text !== "") entries.push([normalText(name), text]);
  }
  return entries.length > 1 ? entries.sort(byCodeUnits) : entries;
}

/** Never by locale: the order must be the same on every machine. */
function byCodeUnits([a, x]: [string, string], [b, y]: [string, string]): number {
  if (a !== b) return a < b ? -1 : 1;
  return x < y ? -1 : 1;
}

/** The model of a price group. */
export function modelOfGroup(group: string): string {
  return (JSON.parse(group) as [string])[0];
}

/** A price group in the words of a manifest. */
export function groupText(group: string): string {
  const [model, params] = JSON.parse(group) as [string, [string, string][]];
  return [model, ...params.map(([key, value]) => `${key}=${value}`)].join(" ");
}

/**
 * The price shown for paying for an item again: the service's price, or the highest charge in its price group if that
 * is more, so that the person never pays more than they agreed to.
 */
export function offeredPrice(
  item: { model: string; params: Readonly<Record<string, string>> },
  listed: Credits,
  charges: ReadonlyMap<string, Credits>,
): Credits {
  const charge = charges.get(priceGroup(item)) ?? listed;
  return charge > listed ? charge : listed;
}

/**
 * What prices are learned for: a model with its params. Two items of one group are expected to cost the same. The
 * group's name is text, so that a database can hold and compare it.
 */
export function priceGroup(item: { model: string; params: Readonly<Record<string, string>> }): string {
  return JSON.stringify([item.model, itemParams(item.params)]);
}
