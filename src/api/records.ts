import { z } from "zod";
import { subscriptionStatuses } from "./plans.js";

/**
 * The records of the service, as read. Objects let unknown fields pass and enumerations are open, because a service
 * may add a plan, a status or a field at any time and a paid task must survive that.
 */
export const categories = ["image", "video", "audio"] as const;
export type Category = (typeof categories)[number];

export const taskStatuses = ["processing", "completed", "failed"] as const;

/** An amount or a count that may be malformed. */
function asReceived(what: string) {
  return z.unknown().optional().describe(`${what}; a number, unless the service is at fault`);
}

/** A string that is usually one of `known`, kept as it came. */
function open<const Known extends string>(known: readonly Known[]) {
  return z.string().meta({ examples: [...known] }) as z.ZodType<Known | (string & {})>;
}

export const task = z.looseObject({
  task_id: z.string().min(1),
  model: z.string().describe("the model's key"),
  category: open(categories),
  status: open(taskStatuses),
  input: z.looseObject({}).describe("what it was made from: the prompt, and each param under its own name"),
  output_urls: z.array(z.string()).nullable().describe("signed URLs that expire; null unless completed"),
  error: z.string().nullable().describe("why it failed; null unless it did"),
  credits_consumed: z.number().describe("in credits; 0 when the task failed"),
  created_at: z.string().describe("ISO 8601"),
  completed_at: z.string().nullable().describe("ISO 8601; null while it is processing"),
});
/** A task as GET task returns it. */
export type Task = z.infer<typeof task>;

export const creation = z.looseObject({
  task_id: z.string().min(1),
  external_task_id: z.string(),
  status: open(taskStatuses),
  model: z.string(),
  category: open(categories),
  credits_consumed: z.number(),
  credits_remaining: z.number(),
});

export const modelParameter = z.looseObject({
  key: z.string().describe("its name in `params`"),
  label: z.string().describe("its name for people"),
  type: open(["select"]),
  options: z
    .array(z.looseObject({ value: z.string(), label: z.string() }))
    .optional()
    .describe("the values that it allows"),
  default: z.string().optional().describe("the value when it is not given"),
});
/** A parameter of a model: what `params` may contain. */
export type ModelParameter = z.infer<typeof modelParameter>;

export const model = z.looseObject({
  model_key: z.string().describe("the value to send as `model`"),
  model_name: z.string().describe("its name for people"),
  category: open(categories),
  credits_cost: z.number().describe("the base cost of one generation, in credits"),
  input_type: open(["text", "image", "video", "text+image"]).describe(
    "what a request needs: text is a prompt, image and video are URLs",
  ),
  parameters: z
    .array(modelParameter)
    .optional()
    .describe("absent or empty when the list was asked for without parameters"),
});
/** A model in the list that GET models returns. */
export type Model = z.infer<typeof model>;

export const modelList = z.looseObject({
  models: z.array(model),
  categories: z.record(z.string(), z.array(z.string())).describe("keys of models by category"),
  total: z.number().describe("how many models there are"),
});
/** What GET models returns. */
export type ModelList = z.infer<typeof modelList>;

export const me = z.looseObject({
  user: z.looseObject({ id: z.string().min(1), email: z.string(), name: z.string().nullable() }),
  credits: z.looseObject({ balance: z.number(), used_this_key: z.number() }),
  subscription: z
    .looseObject({
      status: open(subscriptionStatuses),
      plan: open(["Starter", "Pro", "Enterprise"]),
      credits_per_month: z.number(),
      billing_interval: open(["month", "year"]),
      current_period_end: z.string().describe("ISO 8601"),
      cancel_at_period_end: z.boolean().describe("the subscription ends with the current period"),
    })
    .nullable()
    .describe("null without an active subscription"),
  api_key: z.looseObject({ id: z.string(), name: z.string(), requests_count: z.number() }),
});

/** The answer of GET me with amounts and counts as received: a malformed one does not make the account unusable. */
export const meReceived = me.extend({
  credits: z.looseObject({
    balance: asReceived("credits that are left"),
    used_this_key: asReceived("credits that were charged to this key"),
  }),
  subscription: me.shape.subscription
    .unwrap()
    .extend({ credits_per_month: asReceived("credits that the plan adds each month") })
    .nullable()
    .describe("null without an active subscription"),
  api_key: me.shape.api_key.extend({
    requests_count: asReceived("requests that were made with this key"),
  }),
});
/**
 * What GET me returns. Amounts and counts are numbers by the service's documentation, and kept as received: check them
 * before you calculate with them.
 */
export type Me = z.infer<typeof meReceived>;

/** As sent. Every param is a string. */
export const generateRequest = z.looseObject({
  model: z.string().describe("the model's key"),
  prompt: z.string().optional().describe("needed by models whose input type has text"),
  params: z.record(z.string(), z.string()).optional().describe("params that the model's `parameters` list"),
  image_url: z.string().optional().describe("needed by models whose input type has image"),
  video_url: z.string().optional().describe("needed by models whose input type is video"),
  audio_url: z.string().optional(),
});
/** As bulkgen sends it. */
export const exactRequest = z.strictObject(generateRequest.shape);
/** The body of POST generate. */
export type GenerateRequest = z.infer<typeof exactRequest>;

/** The error body of the sandbox. The shape of the real service's is not documented: `errorFacts` reads several. */
export const errorBody = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

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
 * without a known field of words is told as its JSON.
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

/**
 * The JSON value of a text, or null when it is none. NaN and Infinity, which some services write, are read as null; a
 * byte order mark before the text is no part of it.
 */
export function parseJson(text: string): unknown {
  const json = text.startsWith("\ufeff") ? text.slice(1) : text;
  return parsed(json) ?? parsed(json.replace(notNumbers, "null"));
}

const notNumbers = /(?<=[:[,]\s{0,8})-?(?:NaN|Infinity)(?=\s{0,8}[,}\]])/g;

function parsed(text: string): unknown {
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
