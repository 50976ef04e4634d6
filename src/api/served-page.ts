import { z } from "zod";
import { plans } from "./plans.js";
import { categories } from "./records.js";

/**
 * Requests and answers of the page of `bulkgen serve`. Times are UTC ms, and amounts are credits. It is no part of the interface:
 * only the page that comes from the same service reads it.
 */

const amount = z.number().nonnegative();
const count = z.int().nonnegative();
const utcMs = z.int();

const model = z.strictObject({
  key: z.string(),
  name: z.string(),
  category: z.enum(categories),
  provider: z.string(),
  kind: z.string(),
  credits: amount.describe("what one costs, unless an option says otherwise"),
  prices: z
    .array(z.strictObject({ param: z.string(), option: z.string(), credits: amount }))
    .describe("options with a price of their own"),
  waiting: count.describe("jobs that are not sent yet"),
  working: count.describe("jobs that the provider has, or that are on their way to it or from it"),
});
export type PageModel = z.output<typeof model>;

/**
 * How far a job of the service is:
 *
 * - `queued`: taken, and certainly not with the provider
 * - `submitting`: being sent; whoever finds it after a restart does not know whether it arrived
 * - `accepted`: the provider has it
 * - `made`: the provider has done it, and its files are being fetched
 * - `unknown`: it was sent, and nobody knows what became of it; only the provider's word or a person's ends this
 * - `decided`: its task is completed or failed
 */
export const jobStages = ["queued", "submitting", "accepted", "made", "unknown", "decided"] as const;
export type JobStage = (typeof jobStages)[number];

const stage = z.enum(jobStages);

const pageJob = z.strictObject({
  id: z.string().describe("that of its task"),
  model: z.string(),
  provider: z.string(),
  key: z.string().describe("the name of the key that asked for it"),
  prompt: z.string().nullable(),
  stage,
  outcome: z.enum(["completed", "failed"]).nullable().describe("null until it is decided"),
  error: z.string().nullable(),
  ref: z.string().nullable().describe("the provider's name for it"),
  note: z.string().nullable().describe("what a person should know"),
  credits: amount,
  queuedAt: utcMs,
  submittedAt: utcMs.nullable(),
});
export type PageJob = z.output<typeof pageJob>;

const key = z.strictObject({
  id: z.string(),
  name: z.string(),
  plan: z.enum(plans),
  createdAt: utcMs,
  revokedAt: utcMs.nullable().describe("null while the key is good"),
  requests: count,
  used: amount,
  left: z
    .strictObject({
      credits: amount.nullable().describe("null for no limit"),
      of: amount.nullable().describe("of how many in the day or month; null if neither limits it"),
      per: z.enum(["day", "month"]).nullable(),
      renewsAt: utcMs.nullable().describe("when the next day or month (UTC) begins"),
    })
    .describe("what it may spend now"),
  perMonth: amount.nullable().describe("what it may spend in a month; null for no limit"),
  perDay: amount.nullable().describe("what it may spend in a day; null for no limit"),
});
export type PageKey = z.output<typeof key>;

const standing = z.strictObject({
  url: z.string().describe("what clients use as base URL"),
  credit: z
    .strictObject({ value: z.number().positive(), currency: z.string() })
    .nullable()
    .describe("what a credit is worth; null if the models file does not say"),
  models: z.array(model),
  stages: z.record(stage, count).describe("jobs by stage"),
  failed: count.describe("of the decided ones, those that have failed"),
  newest: z.array(pageJob).describe("the newest first"),
  unknown: z.array(pageJob).describe("nobody knows whether the provider has them; the oldest first"),
  keys: z.array(key),
  formToken: z.string().describe("what every request that changes something carries in X-Form-Token"),
  now: utcMs,
});
/** `GET api/standing` */
export type ServedStanding = z.output<typeof standing>;

const check = z.array(
  z.strictObject({ provider: z.string(), problem: z.string().nullable().describe("null if it is good") }),
);
/** `GET api/check`: what is wrong with each provider. It asks the providers, which costs nothing but takes its time. */
export type ServedCheck = z.output<typeof check>;

const spent = z.strictObject({ name: z.string(), tasks: count, credits: amount });
export type Spent = z.output<typeof spent>;

const spend = z.strictObject({
  keys: z.array(spent).describe("by key, the most first"),
  models: z.array(spent).describe("by model, the most first"),
  days: z
    .array(spent)
    .describe("by day (UTC), such as 2026-11-28, the newest first; days without tasks are absent"),
});
/** `GET api/spend`: what was charged in the last 30 days, without what was given back. */
export type ServedSpend = z.output<typeof spend>;

const madeKey = z.strictObject({ name: z.string(), value: z.string() });
/** `POST api/keys`: a new key. Its value is here and nowhere else: only a hash of it is stored. */
export type NewServedKey = z.output<typeof madeKey>;

const budget = z.number().nonnegative().max(1e9).nullable();
const newKey = z.strictObject({
  name: z.string().max(1_000),
  plan: z.enum(plans),
  credits: budget,
  perMonth: budget,
  perDay: budget,
});
/** A new key as a person asks for it. */
export type NewKeyRequest = z.output<typeof newKey>;

const word = z.union([
  z.strictObject({ kind: z.literal("found"), ref: z.string().trim().min(1).max(1_000) }),
  z.strictObject({ kind: z.enum(["failed", "again"]) }),
]);
/** What a person says became of an unknown job. */
export type WordOnJob = z.output<typeof word>;

const nothing = z.strictObject({});

/** What the server is asked. */
export const servedPageRequests = { newKey, word };

/** What the server answers, by address. Tests hold every answer against it. */
export const servedPageAnswers = {
  "GET api/standing": standing,
  "GET api/check": check,
  "GET api/spend": spend,
  "POST api/keys": madeKey,
  "POST api/keys/ID/revoke": nothing,
  "POST api/jobs/ID/resolve": nothing,
};
