import { z } from "zod";

/**
 * The records exactly as the page shows them: closed enumerations, no field missing. The product reads with open
 * schemas; these judge a service.
 */
const text = z.string();
const credits = z.number().min(0);
const stamp = z.iso.datetime({ offset: true });
const category = z.enum(["image", "video", "audio"]);

const task = z.looseObject({
  task_id: z.uuid(),
  model: text,
  category,
  input: z.record(text, z.unknown()),
  credits_consumed: credits,
  created_at: stamp,
});

export const processingTask = task.extend({
  status: z.literal("processing"),
  output_urls: z.null(),
  error: z.null(),
  completed_at: z.null(),
});

export const completedTask = task.extend({
  status: z.literal("completed"),
  output_urls: z.array(z.url()).min(1),
  error: z.null(),
  completed_at: stamp,
});

export const failedTask = task.extend({
  status: z.literal("failed"),
  output_urls: z.null(),
  error: text.min(1),
  credits_consumed: z.literal(0),
  completed_at: stamp,
});

export const creation = z.looseObject({
  task_id: z.uuid(),
  external_task_id: text.min(1),
  status: z.literal("processing"),
  model: text,
  category,
  credits_consumed: credits,
  credits_remaining: credits,
});

const parameter = z.looseObject({
  key: text.min(1),
  label: text.min(1),
  type: z.literal("select"),
  options: z.array(z.looseObject({ value: text, label: text })).min(1),
  default: text,
});

const model = z.looseObject({
  model_key: text.min(1),
  model_name: text.min(1),
  category,
  credits_cost: credits,
  input_type: z.enum(["text", "image", "video", "text+image"]),
  parameters: z.array(parameter),
});

export const modelList = z.looseObject({
  models: z.array(model).min(1),
  categories: z.strictObject({ image: z.array(text), video: z.array(text), audio: z.array(text) }),
  total: z.int(),
});

export const subscription = z.looseObject({
  status: z.enum(["active", "canceled", "past_due"]),
  plan: z.enum(["Starter", "Pro", "Enterprise"]),
  credits_per_month: credits,
  billing_interval: z.enum(["month", "year"]),
  current_period_end: stamp,
  cancel_at_period_end: z.boolean(),
});

export const me = z.looseObject({
  user: z.looseObject({ id: z.uuid(), email: z.email(), name: text.nullable() }),
  credits: z.looseObject({ balance: credits, used_this_key: credits }),
  subscription: subscription.nullable(),
  api_key: z.looseObject({ id: text.min(1), name: text, requests_count: z.int().min(0) }),
});
