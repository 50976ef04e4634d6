import { type Category, categories } from "../../api/records.js";
import { refuse } from "../answers/answers.js";
import type { ServiceModel } from "../models/model.js";
import { type AccountRecord, fromMicro, type TaskRecord } from "../state/state.js";
import type { Switches } from "../state/switches.js";
import type { AuthenticatedCaller } from "./authenticate.js";

/** Converts the world's records to answers: the service's field names, decimal credits, ISO 8601 times. */

/** Whether a task's final state can be seen at `now`. */
export function isFinal(task: TaskRecord, now: number): boolean {
  return task.outcome !== null && (task.seenFinal || now >= task.dueAt);
}

/** The answer of GET task. `urls` are the signed addresses of the outputs, used when it is completed. */
export function taskView(task: TaskRecord, now: number, urls: () => string[], progress: TaskProgress = {}) {
  const final = isFinal(task, now);
  const failed = final && task.outcome === "failed";
  return {
    task_id: task.id,
    model: task.model,
    category: task.category,
    status: final ? task.outcome : "processing",
    input: task.input,
    output_urls: final && !failed ? urls() : null,
    error: failed ? task.error : null,
    credits_consumed: failed ? 0 : fromMicro(task.costMicro),
    created_at: stamp(task.createdAt),
    completed_at: final ? stamp(task.dueAt) : null,
    ...progress,
  };
}

/** What an answer says of a task that is not finished, beyond the documented fields. */
export interface TaskProgress {
  /** What a person should know, such as that the provider's answer was lost. */
  note?: string;
  /** Of a task that has not begun: how many are before it, and about how long they will take. */
  queue?: { position: number; ahead_ms?: number };
  /** When it was begun; ISO 8601. */
  started_at?: string;
}

/** The answer of POST generate. */
export function creationView(task: TaskRecord, remainingMicro: number) {
  return {
    task_id: task.id,
    external_task_id: task.externalId,
    status: "processing",
    model: task.model,
    category: task.category,
    credits_consumed: fromMicro(task.costMicro),
    credits_remaining: fromMicro(remainingMicro),
  };
}

/** The answer of GET models; parameters are shown, or left out in one of two ways. */
function modelListView(models: readonly ServiceModel[], parameters: "shown" | "empty" | "absent") {
  const keysOf = (category: Category) =>
    models.filter((model) => model.category === category).map((model) => model.key);
  return {
    models: models.map((model) => ({
      model_key: model.key,
      model_name: model.name,
      category: model.category,
      credits_cost: model.credits,
      input_type: model.inputType,
      ...(parameters === "absent" ? {} : { parameters: parameters === "shown" ? model.parameters : [] }),
    })),
    categories: Object.fromEntries(categories.map((category) => [category, keysOf(category)])),
    total: models.length,
  };
}

/** The answer of GET me. A hidden subscription is null. */
export function meView(
  { key, account }: AuthenticatedCaller,
  shown: boolean,
  announced: ServiceExtras | null,
  budget: KeyBudget | null,
) {
  return {
    user: { id: account.id, email: account.email, name: account.name },
    credits: { balance: fromMicro(account.balanceMicro), used_this_key: fromMicro(key.usedMicro) },
    subscription: shown ? subscriptionView(account) : null,
    api_key: { id: key.id, name: key.name, requests_count: key.requestsCount },
    ...(announced === null
      ? {}
      : { service: budget ? { ...announced, budget: budgetView(budget) } : announced }),
  };
}

/** What a key may still spend in a day or a month (UTC). */
export interface KeyBudget {
  leftMicro: number;
  ofMicro: number;
  per: "day" | "month";
  /** When the next day or month begins. */
  renewsAt: number;
}

function budgetView({ leftMicro, ofMicro, per, renewsAt }: KeyBudget) {
  return { left: fromMicro(leftMicro), of: fromMicro(ofMicro), per, renews_at: stamp(renewsAt) };
}

/** Why a task that costs more than is left is refused. */
export function beyondBudget(
  { model, costMicro }: Pick<TaskRecord, "model" | "costMicro">,
  { leftMicro, ofMicro, per, renewsAt }: KeyBudget,
): string {
  const [cost, of, left] = [costMicro, ofMicro, leftMicro].map(fromMicro);
  return `${model} costs ${cost} credits. This key may spend ${of} credits a ${per} and has ${left} left until ${stamp(renewsAt)}.`;
}

/** What a service can do beyond its page, as GET me tells. */
export interface ServiceExtras {
  name: string;
  /** How long a repeated Idempotency-Key gets the same task (ms). */
  idempotency_ms: number;
  inputs: boolean;
  cancel: boolean;
  queue: boolean;
  /** Who does the jobs: the models of each provider share its places. */
  providers: {
    /** How many jobs are done at once. */
    at_once: number;
    /** How long what there is to do already will take; null before the first job has ended. */
    ahead_ms: number | null;
    /** By model: how long its jobs took lately; null before the first has ended. */
    usual_ms: Record<string, number | null>;
  }[];
  /** What a credit is worth, if the service says so. */
  credit?: { value: number; currency: string };
}

function subscriptionView(account: AccountRecord) {
  if (account.subscriptionStatus === null) return null;
  return {
    status: account.subscriptionStatus,
    plan: account.plan,
    credits_per_month: account.creditsPerMonth,
    billing_interval: account.billingInterval,
    current_period_end: stamp(account.periodEnd),
    cancel_at_period_end: account.cancelAtPeriodEnd,
  };
}

function stamp(ms: number): string {
  return new Date(ms).toISOString();
}

/** The model list under the filters of the query. A filter value that means nothing throws 400, or is ignored. */
export function listModels(
  models: readonly ServiceModel[],
  query: Readonly<Record<string, string>>,
  switches: Switches,
) {
  const category = filter(query, "category", categories, switches.badFilter);
  const include = filter(query, "include_parameters", ["true", "false"], switches.badFilter);
  const chosen = models.filter((model) => category === undefined || model.category === category);
  return modelListView(chosen, include === "false" ? switches.parametersLeftOut : "shown");
}

function filter(
  query: Readonly<Record<string, string>>,
  name: string,
  values: readonly string[],
  bad: Switches["badFilter"],
): string | undefined {
  const value = query[name];
  if (value === undefined || values.includes(value)) return value;
  if (bad === "ignored") return undefined;
  throw refuse(
    "INVALID_REQUEST",
    `${name} is ${JSON.stringify(value)}, but may be one of ${values.join(", ")}.`,
  );
}
