import { Liquid } from "liquidjs";
import { JobRefused, type Json, type JsonObject } from "../provider.js";

/** The values that templates may name. A name without a value is absent, so `{% if name %}` works. */
export type TemplateValues = Readonly<Record<string, string>>;

const limits = {
  strictFilters: true,
  ownPropertyOnly: true,
  templates: {},
  parseLimit: 100_000,
  renderLimit: 1000,
};
const plain = new Liquid(limits);
/** What a value brings into an address stays a part of its path or of its query. */
const inAddress = new Liquid({
  ...limits,
  outputEscape: (value) => String(value).split("/").map(encodeURIComponent).join("/"),
});

/** A value that is nothing but one name, as in `{{ prompt }}`. */
const oneName = /^\{\{-?\s*([\w-]+)\s*-?\}\}$/;
/** A value that is nothing but one output, as in `{{ size | upcase }}`. */
const oneOutput = /^\{\{[^{}]*\}\}$/;

/** What is wrong with a template; null if nothing is. */
export function templateFault(text: string): string | null {
  try {
    plain.parse(text);
    return null;
  } catch (error) {
    return (error as Error).message.replace(/, line:1, col:/, " at character ");
  }
}

/** The names that a template uses. */
export function namesIn(text: string): string[] {
  if (!text.includes("{{") && !text.includes("{%")) return [];
  try {
    return plain.globalVariablesSync(text);
  } catch {
    return [];
  }
}

/** All names that the templates in a value use, and the parameters that it maps. */
export function namesWithin(value: Json | undefined): string[] {
  if (typeof value === "string") return namesIn(value);
  if (Array.isArray(value)) return value.flatMap(namesWithin);
  if (typeof value !== "object" || value === null) return [];
  const mapped = mappedParam(value);
  if (mapped !== null) return [mapped.from];
  if (isFile(value)) return [value.file];
  return Object.values(value).flatMap(namesWithin);
}

export function fillText(text: string, names: TemplateValues): string {
  const name = oneName.exec(text)?.[1];
  if (name !== undefined) return Object.hasOwn(names, name) ? (names[name] as string) : "";
  return text.includes("{{") || text.includes("{%")
    ? (plain.parseAndRenderSync(text, names) as string)
    : text;
}

/** An address or the path of one. Throws `JobRefused` if a value would lead to another path. */
export function fillAddress(text: string, names: TemplateValues): string {
  const address = inAddress.parseAndRenderSync(text, names) as string;
  if (/(^|\/)\.{1,2}(\/|$|\?)/.test(address.replace(/^https?:\/\//, "")))
    throw new JobRefused("parameter", "a parameter may not contain `..` as a part of a path", false);
  return address;
}

/**
 * A body with its values. Text stays text; `{ number: … }` and `{ boolean: … }` make one of it, and `{ from: param, map: { … } }`
 * says what each value of a parameter means here. What is a name without a value is left out, and so is what contains nothing
 * else. Throws `JobRefused` if a value is no number.
 */
export function fill(value: Json, names: TemplateValues): Json | undefined {
  if (typeof value === "string") {
    const text = fillText(value, names);
    return text === "" && oneOutput.test(value.trim()) ? undefined : text;
  }
  if (Array.isArray(value))
    return kept(
      value.flatMap((one) => fill(one, names) ?? []),
      value.length,
    );
  if (typeof value !== "object" || value === null) return value;
  const mapped = mappedParam(value);
  if (mapped !== null) {
    const given = names[mapped.from];
    if (given === undefined) return undefined;
    return Object.hasOwn(mapped.map, given) ? mapped.map[given] : given;
  }
  const typed = typedValue(value);
  if (typed !== null) return converted(typed, fillText(typed.text, names).trim());
  const filled = Object.entries(value).flatMap(([name, one]) => {
    const made = fill(one, names);
    return made === undefined ? [] : [[name, made] as const];
  });
  return kept(filled, Object.keys(value).length) && Object.fromEntries(filled);
}

/** What became empty although something was there is nothing. */
function kept<Item>(filled: Item[], before: number): Item[] | undefined {
  return filled.length === 0 && before > 0 ? undefined : filled;
}

function mappedParam(value: JsonObject): { from: string; map: JsonObject } | null {
  const { from, map, ...others } = value;
  const isMap = typeof map === "object" && map !== null && !Array.isArray(map);
  return typeof from === "string" && isMap && Object.keys(others).length === 0 ? { from, map } : null;
}

/** A file of a form: `{ file: image }`. */
export function isFile(value: Json): value is { file: string } {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { file, ...others } = value;
  return ["image", "video", "audio"].includes(String(file)) && Object.keys(others).length === 0;
}

function typedValue(value: JsonObject): { type: "number" | "boolean"; text: string } | null {
  const [[type, text] = [], another] = Object.entries(value);
  if (another !== undefined || typeof text !== "string" || !text.includes("{{")) return null;
  return type === "number" || type === "boolean" ? { type, text } : null;
}

function converted(
  { type, text }: { type: "number" | "boolean"; text: string },
  given: string,
): Json | undefined {
  if (given === "") return undefined;
  if (type === "boolean") return given === "true" || given === "yes" || given === "1";
  const number = Number(given);
  if (Number.isFinite(number)) return number;
  throw new JobRefused(
    "parameter",
    `${namesIn(text)[0] ?? "a value"} must be a number, not "${given}"`,
    false,
  );
}

/**
 * The body that a description proposes, with what a model's request says instead. What the request already names (the prompt, an
 * input) under a name of its own is not proposed again.
 */
export function merged(proposed: JsonObject, request: JsonObject): JsonObject {
  const used = new Set(namesWithin(request).map(mediaOf));
  const merge = (base: Json, own: Json | undefined): Json | undefined => {
    if (isPlain(base) && (own === undefined || isPlain(own))) {
      const names = new Set([...Object.keys(base), ...Object.keys(own ?? {})]);
      const all = [...names].flatMap((name) => {
        const one = name in base ? merge(base[name] as Json, own?.[name]) : own?.[name];
        return one === undefined ? [] : [[name, one] as const];
      });
      return kept(all, names.size) && Object.fromEntries(all);
    }
    if (own !== undefined) return own;
    if (Array.isArray(base))
      return kept(
        base.flatMap((one) => merge(one, undefined) ?? []),
        base.length,
      );
    return namesWithin(base).some((name) => used.has(mediaOf(name))) ? undefined : base;
  };
  return (merge(proposed, request) ?? {}) as JsonObject;
}

/** `image_base64` and `image_type` are the image. Parameters are in use only by their own names. */
function mediaOf(name: string): string {
  return /^(prompt|image|video|audio)(_base64|_type)?$/.exec(name)?.[1] ?? `param ${name}`;
}

function isPlain(value: Json | undefined): value is JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return mappedParam(value) === null && typedValue(value) === null && !isFile(value);
}
