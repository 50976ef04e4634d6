import { z } from "zod";

/**
 * What the service's page leaves open, as switches: real services differ there, and a rehearsal is worth most on a
 * sandbox that behaves like the service it stands for. The defaults are the sandbox's own reading of the page.
 */
const limiter = z.strictObject({
  kind: z.enum(["sliding-log", "fixed-window", "sliding-counter", "token-bucket"]).default("sliding-log"),
  /** Start of fixed windows and counters, in milliseconds after each full minute of UTC. */
  alignMs: z.int().min(0).max(59_999).default(0),
  /** The capacity of a token bucket; null uses the plan's limit. */
  burst: z.int().min(1).nullable().default(null),
  /** Whether refused requests count too, so that hammering keeps being refused. */
  countsRejected: z.boolean().default(false),
  /** Whether the daily limit covers the last 24 hours or restarts at midnight UTC. */
  day: z.enum(["rolling", "utc"]).default("rolling"),
});

const tooMany = z.strictObject({
  retryAfter: z.enum(["none", "seconds", "date"]).default("seconds"),
  body: z.enum(["json", "text", "empty"]).default("json"),
});

const refund = z.strictObject({
  /** At the task's end, `delayMs` after it, or at the first GET of the failed task. */
  at: z.enum(["end", "delayed", "seen"]).default("end"),
  delayMs: z.int().min(0).default(60_000),
  /** Whether `used_this_key` falls with it. */
  lowersUsed: z.boolean().default(true),
});

const subscription = z.strictObject({
  /** Which endpoints answer 403 without an active subscription. */
  neededFor: z.enum(["all", "all-but-me", "generate"]).default("all-but-me"),
  /** Whether a canceled subscription is good until its period ends. */
  canceledIsGood: z.boolean().default(true),
  pastDueIsGood: z.boolean().default(false),
  /** Whether GET me shows an invalid subscription, or null instead. */
  shownWhenNotGood: z.boolean().default(true),
});

const price = z.strictObject({
  /** What is charged is the base cost times this, to a millionth of a credit. */
  factor: z.number().positive().max(1_000).default(1),
  /** Charges in credits by model, overriding their listed cost. */
  models: z.record(z.string(), z.number().min(0)).default({}),
  /** Whether several outputs cost several times as much. */
  perOutput: z.boolean().default(false),
});

const outputs = z.strictObject({
  /** How many files every generation makes. */
  number: z.int().min(1).max(4).default(1),
  /** The name of a parameter, added to every model, with which a request chooses the number; null for none. */
  parameter: z
    .string()
    .regex(/^[a-z][a-z0-9_]*$/)
    .nullable()
    .default(null),
});

export const switches = z.strictObject({
  limiter: limiter.prefault({}),
  tooMany: tooMany.prefault({}),
  refund: refund.prefault({}),
  subscription: subscription.prefault({}),
  price: price.prefault({}),
  outputs: outputs.prefault({}),
  /** Whether a generate that answers GENERATION_ERROR is charged anyway; its task then continues. */
  errorIsCharged: z.boolean().default(false),
  /** Which requests with a valid key `requests_count` counts: all, those within the limits, those answered 200, or POSTs. */
  requestsCount: z.enum(["all", "admitted", "succeeded", "generates"]).default("all"),
  /** Whether each GET task signs new URLs, or all return those signed at the task's end. */
  signing: z.enum(["each-look", "once"]).default("each-look"),
  /** How long a signed URL is good. */
  urlMs: z
    .int()
    .min(1)
    .default(60 * 60 * 1_000),
  /** What a model's `parameters` are in a list that was asked for without them. */
  parametersLeftOut: z.enum(["empty", "absent"]).default("empty"),
  /** What becomes of an invalid `category` or `include_parameters`. */
  badFilter: z.enum(["refused", "ignored"]).default("refused"),
  /** What becomes of params that the model does not list. */
  badParams: z.enum(["refused", "ignored"]).default("refused"),
  /** Code and message inside `error`, both at the top, or the code as `error` and the message beside it. */
  errorShape: z.enum(["nested", "flat", "string"]).default("nested"),
  /** Whether every answer carries `X-Request-Id`. */
  requestIds: z.boolean().default(false),
  /** Whether answers carry `RateLimit-Limit`, `-Remaining` and `-Reset` of the minute. */
  rateLimitHeaders: z.boolean().default(false),
});

/** Every switch, set. */
export type Switches = z.output<typeof switches>;

/** Some switches; the others keep their defaults. Also the format of a saved profile of a real service. */
export type SwitchSettings = z.input<typeof switches>;

/** All switches from some. Throws zod's error, which names the switch, for a value that none has. */
export function allSwitches(some: SwitchSettings = {}): Switches {
  return switches.parse(some);
}

export type LimiterSwitches = Switches["limiter"];
