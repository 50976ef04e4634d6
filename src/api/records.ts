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
