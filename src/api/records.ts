import { z } from "zod";
import { subscriptionStatuses } from "./plans.js";

/**
 * The records of the service, as read. Objects let unknown fields pass and enumerations are open, because a service
 * may add a plan, a status or a field at any time and a paid task must survive that.
 */
export const categories = ["image", "video", "audio"] as const;
export type Category = (typeof categories)[number];

export const taskStatuses = ["processing", "completed", "failed"] as const;

/** A string that is usually one of `known`, kept as it came. */
function open<const Known extends string>(_known: readonly Known[]) {
  return z.string() as z.ZodType<Known | (string & {})>;
}

export const task = z.looseObject({
  task_id: z.string().min(1),
  model: z.string(),
  category: open(categories),
  status: open(taskStatuses),
  input: z.looseObject({}),
  output_urls: z.array(z.string()).nullable(),
  error: z.string().nullable(),
  /** Credits; 0 when the task failed. */
  credits_consumed: z.number(),
  created_at: z.string(),
  completed_at: z.string().nullable(),
});
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
  key: z.string(),
  label: z.string(),
  type: open(["select"]),
  options: z.array(z.looseObject({ value: z.string(), label: z.string() })).optional(),
  default: z.string().optional(),
});
export type ModelParameter = z.infer<typeof modelParameter>;

export const model = z.looseObject({
  model_key: z.string(),
  model_name: z.string(),
  category: open(categories),
  /** Base cost of one generation in credits. */
  credits_cost: z.number(),
  input_type: open(["text", "image", "video", "text+image"]),
  /** Absent or empty when the list was asked for without parameters. */
  parameters: z.array(modelParameter).optional(),
});
export type Model = z.infer<typeof model>;

export const modelList = z.looseObject({
  models: z.array(model),
  categories: z.record(z.string(), z.array(z.string())),
  total: z.number(),
});
export type ModelList = z.infer<typeof modelList>;

/** The same for reading: a price that is no number makes one model unusable, and not the list. */
export const modelListRead = modelList.extend({
  models: z.array(model.extend({ credits_cost: z.number().catch(Number.NaN) })),
});

export const me = z.looseObject({
  user: z.looseObject({ id: z.string().min(1), email: z.string(), name: z.string().nullable() }),
  credits: z.looseObject({ balance: z.number(), used_this_key: z.number() }),
  subscription: z
    .looseObject({
      status: open(subscriptionStatuses),
      plan: open(["Starter", "Pro", "Enterprise"]),
      credits_per_month: z.number(),
      billing_interval: open(["month", "year"]),
      current_period_end: z.string(),
      cancel_at_period_end: z.boolean(),
    })
    .nullable(),
  api_key: z.looseObject({ id: z.string(), name: z.string(), requests_count: z.number() }),
});

const anything = z.unknown().optional();
/** The same for reading: amounts and counts are kept as received, so a malformed one does not make the account unusable. */
export const meRead = me.extend({
  credits: z.looseObject({ balance: anything, used_this_key: anything }),
  subscription: me.shape.subscription.unwrap().extend({ credits_per_month: anything }).nullable(),
  api_key: me.shape.api_key.extend({ requests_count: anything }),
});
export type Me = z.infer<typeof meRead>;

/** The body of POST generate, as sent. Every param is a string. */
export const generateRequest = z.looseObject({
  model: z.string(),
  prompt: z.string().optional(),
  params: z.record(z.string(), z.string()).optional(),
  image_url: z.string().optional(),
  video_url: z.string().optional(),
  audio_url: z.string().optional(),
});
export type GenerateRequest = z.infer<typeof generateRequest>;

/** The error body of the sandbox. The shape of the real service's is not documented: `errorFacts` reads several. */
export const errorBody = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

export interface ErrorFacts {
  code: string | null;
  message: string | null;
}

/** Code and message of an error body in any of the usual shapes: `error.code`, `code`, or `error` as a string. */
export function errorFacts(body: unknown): ErrorFacts {
  const top = asRecord(body);
  const nested = asRecord(top["error"]);
  return {
    code: text(nested["code"]) ?? text(top["code"]) ?? text(top["error"]),
    message: text(nested["message"]) ?? text(top["message"]),
  };
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

/** The JSON value of a text, or null when it is none. NaN and Infinity, which some services write, are read as null. */
export function parseJson(text: string): unknown {
  return parsed(text) ?? parsed(text.replace(notNumbers, "null"));
}

const notNumbers = /(?<=[:[,]\s{0,8})-?(?:NaN|Infinity)(?=\s{0,8}[,}\]])/g;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A value as an object to look into: an empty one when it is something else. */
export function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
