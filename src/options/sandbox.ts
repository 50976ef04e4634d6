import { plans, subscriptionStatuses } from "../api/plans.js";
import { type FlagsOf, option, toggle } from "./definition.js";
import { amount, anyText, FlagError, oneOf, pathName, portNumber } from "./values.js";

/** Flags that say where the state of a sandbox is. */
const stateFlags = {
  state: option(
    "<file>",
    "the sandbox's state (default: .bulkgen/sandbox/service.db of the workspace)",
    anyText,
    { isPath: true },
  ),
  workspace: option(
    "<folder>",
    "folder with .bulkgen/ (default: the nearest at or above this one)",
    pathName,
    { isPath: true },
  ),
};
export type StateFlags = FlagsOf<typeof stateFlags>;

export const sandboxFlags = {
  port: option("<n>", "port on 127.0.0.1", portNumber, { default: 0, defaultText: "any free port" }),
  inputs: option(
    "<folder>",
    "take files below this folder as inputs, by their paths (default: none)",
    anyText,
    { isPath: true },
  ),
  plan: option(
    "<plan>",
    `plan of its account: ${plans.join(", ")} (default: unchanged; Pro at first)`,
    oneOf(...plans),
  ),
  credits: option("<n>", "credits of its account (default: unchanged; 500 at first)", amount),
  // Not from settings files: there, `models` is a models file.
  models: option("<file>", "offer the models in a file that bulkgen models --save wrote", anyText, {
    isPath: true,
    inFiles: "never",
  }),
  switches: option("<file>", "behave like the service that this file describes", anyText, { isPath: true }),
  faults: option("<file|preset>", "inject the faults of a file or a preset, such as flaky", anyText, {
    isPath: true,
  }),
  faultSeed: option("<text>", "seed of the faults; another text moves them to other requests", anyText),
  taskMs: option("<min-max>", "how long tasks take, in ms", milliseconds),
  json: toggle("print {url, key, dashboard} on one line once it listens"),
  ...stateFlags,
};
export type SandboxFlags = FlagsOf<typeof sandboxFlags>;

export const sandboxKeyFlags = {
  user: option("<email>", "owner of the keys (default: the sandbox's own user)", anyText),
  json: toggle("print one JSON document on stdout"),
  ...stateFlags,
};
export type SandboxKeyFlags = FlagsOf<typeof sandboxKeyFlags>;

const subscriptions = [...subscriptionStatuses, "none"] as const;

export const sandboxAccountFlags = {
  user: option("<email>", "owner of the account (default: the sandbox's own user)", anyText),
  create: option("<email>", "create an account for another user", anyText, { conflicts: ["user"] }),
  name: option("<name>", "the user's full name", anyText),
  plan: option("<plan>", plans.join(", "), oneOf(...plans)),
  credits: option("<n>", "the new balance", amount),
  subscription: option("<status>", subscriptions.join(", "), oneOf(...subscriptions)),
  billingInterval: option("<interval>", "month or year; a new period begins with it", oneOf("month", "year")),
  cancelAtPeriodEnd: toggle("the subscription ends with its period", { negatable: true }),
  periodEnd: option("<date>", "when the current period ends, such as 2026-12-31", instant),
  all: toggle("show the accounts of all users", {
    conflicts: [
      "user",
      "create",
      "name",
      "plan",
      "credits",
      "subscription",
      "billingInterval",
      "cancelAtPeriodEnd",
      "periodEnd",
    ],
  }),
  json: toggle("print one JSON document on stdout"),
  ...stateFlags,
};
export type SandboxAccountFlags = FlagsOf<typeof sandboxAccountFlags>;

function milliseconds(text: string): { min: number; max: number } {
  const match = /^(\d+)(?:-(\d+))?$/.exec(text);
  const min = Number(match?.[1]);
  const max = Number(match?.[2] ?? match?.[1]);
  if (!match || min > max)
    throw new FlagError(`expected a range such as 500-1800, got ${JSON.stringify(text)}`);
  return { min, max };
}

function instant(text: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms))
    throw new FlagError(`expected a date such as 2026-12-31, got ${JSON.stringify(text)}`);
  return ms;
}
