import { z } from "zod";
import { plans, subscriptionStatuses } from "../api/plans.js";
import { meReceived, modelList } from "../api/records.js";
import { jobStages } from "../api/served-page.js";
import { count, credits, exit, exitName, flag, text, time, workspace } from "./values.js";

const quotaWindow = z.strictObject({
  limit: count("requests that the plan allows; null: any number").nullable(),
  used: count("requests that occupy it now, as this machine knows them"),
  nextFreeAt: time("when a request may be sent"),
  nextReleaseAt: time("when the next request leaves it; null if it is empty").nullable(),
});

export const account = meReceived.extend({
  quota: z
    .strictObject({
      minute: quotaWindow,
      day: quotaWindow,
      blockedUntil: time("the service asked for a pause until then").nullable(),
    })
    .describe("requests of this account from this machine"),
});

export const models = modelList;

export const setting = z.strictObject({
  name: text("as a flag, without the dashes"),
  value: z.string(),
  from: text("a flag, a variable, a place in a file, or `default`"),
});

/** What a check of `bulkgen doctor` found. */
export const checkStates = ["ok", "warning", "problem", "not checked"] as const;
export type CheckState = (typeof checkStates)[number];

export const doctor = z.strictObject({
  ok: flag("nothing that was checked can stop a run"),
  exit,
  exitName,
  checks: z.array(
    z.strictObject({
      name: text("what is checked"),
      state: z.enum(checkStates),
      expected: z.string(),
      got: z.string(),
      todo: text("what to do about it; null if nothing").nullable(),
    }),
  ),
  settings: z.array(setting).describe("the settings of a run that have a value"),
});

export const dashboard = z.strictObject({
  link: text("the page's address, with its token"),
  workspace,
});

export const sandbox = z.strictObject({
  url: text("the service's address"),
  key: text("an API key of its account"),
  dashboard: text("the address of its page"),
});

export const served = z.strictObject({
  url: text("the service's address"),
  key: text("the first key, which is shown only once; absent if there are keys already").optional(),
  page: text("the address of its page, with its token, for a browser on this machine"),
});

export const newServedKey = z.strictObject({
  name: z.string(),
  key: text("the key itself, which is shown only once"),
});

export const servedKey = z.strictObject({
  id: z.string(),
  name: z.string(),
  plan: z.enum(plans),
  created_at: time("when it was created"),
  revoked_at: time("when it was revoked; null if it is valid").nullable(),
  requests_count: count("requests that were made with it"),
  credits_used: credits("what was charged to it"),
  credits_left: credits(
    "what it may spend now, under the tightest of its budgets; null for no limit",
  ).nullable(),
  credits_left_per: z
    .enum(["day", "month"])
    .nullable()
    .describe("whose budget that is; null if it is what the key has left in all"),
  renews_at: time("when that day or month (UTC) ends").nullable(),
  credits_per_month: credits("what it may spend in a month; null for no limit").nullable(),
  credits_per_day: credits("what it may spend in a day; null for no limit").nullable(),
});

export const servedJob = z.strictObject({
  task_id: z.string(),
  model: z.string(),
  provider: z.string(),
  stage: z.enum(jobStages).describe("how far it is; unknown: nobody knows whether the provider has it"),
  ref: text("the provider's name for it").nullable(),
  note: text("what a person should know").nullable(),
  queued_at: time("when it was taken"),
  submitted_at: time("when it was sent to the provider").nullable(),
});

export const servedCheck = z.strictObject({
  provider: z.string(),
  kind: z.string(),
  models: z.array(z.string()),
  problem: text("what is wrong; null if nothing").nullable(),
});

export const newSandboxKey = z.strictObject({
  id: z.string(),
  name: z.string(),
  key: text("the key itself, which is shown only once"),
  user: text("its owner's email address"),
});

export const sandboxKey = z.strictObject({
  id: z.string(),
  name: z.string(),
  created_at: time("when it was created"),
  revoked_at: time("when it was revoked; null if it is valid").nullable(),
  requests_count: count("requests that were made with it"),
  credits_used: credits("what was charged to it"),
  public: flag("it is the one that is the same in every sandbox"),
});

export const sandboxAccount = z.strictObject({
  user: z.strictObject({ id: z.string(), email: z.string(), name: z.string().nullable() }),
  credits: z.strictObject({ balance: credits("the balance") }),
  subscription: z
    .strictObject({
      status: z.enum(subscriptionStatuses),
      plan: z.enum(plans),
      credits_per_month: credits("what the plan adds each month"),
      billing_interval: z.enum(["month", "year"]),
      current_period_end: time("when the current period ends"),
      cancel_at_period_end: flag("the subscription ends with its period"),
    })
    .nullable(),
});
