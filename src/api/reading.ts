import { errorWords } from "./error-words.js";
import { plans, subscriptionStatuses } from "./plans.js";
import {
  type Category,
  type Me,
  type Model,
  type ModelList,
  type ModelParameter,
  type Task,
  taskStatuses,
} from "./records.js";
import { asNumber, asRecord, jsonIn, unwrapped } from "./values.js";

/**
 * Reads the service's records. Much of their form is not documented, and one odd entry must not make the whole answer
 * useless: what is understood is used, field by field, and what is not is left out and named. Numbers that are sent as text
 * are numbers, ids that are sent as numbers are texts, and what is null may be absent. Only an answer without the record's
 * own mark (`models`, a task's `status`, any part of the account) is not the service's.
 */
export interface RecordReading<Read> {
  record: Read;
  /** What was not understood, one line each. */
  odd: string[];
}

/** Collects what was not understood, each line with the place where it was. */
class Odd {
  constructor(
    readonly lines: string[] = [],
    private readonly place = "",
  ) {}

  at(place: string): Odd {
    return new Odd(this.lines, this.place === "" ? place : `${this.place}, ${place}`);
  }

  add(name: string, value: unknown, becomes: string): void {
    this.lines.push(`${this.place === "" ? name : `${this.place}: ${name}`} is ${shown(value)}: ${becomes}`);
  }
}

const shownMax = 40;

function shown(value: unknown): string {
  if (value === undefined) return "absent";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > shownMax ? `${text.slice(0, shownMax)}…` : text;
}

/**
 * What an answer has, on its top level or in `data` or `result`, as some gateways wrap it: as an object, in a list of one, or
 * as JSON in a text.
 */
export function contentOf(body: unknown, marks: readonly string[]): Record<string, unknown> | null {
  const top = unwrapped(body);
  const has = (fields: Record<string, unknown>) => marks.some((mark) => mark in fields);
  return [top, unwrapped(top["data"]), unwrapped(top["result"])].find(has) ?? null;
}

/** A text; a number as its digits. Null for anything else, and for an empty text. */
function asText(value: unknown): string | null {
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  return typeof value === "string" && value !== "" ? value : null;
}

/** A text for people or one that nothing depends on. */
function words(value: unknown, otherwise: string): string {
  return asText(value) ?? otherwise;
}

/** The models; null without a list of them. */
export function readModels(body: unknown): RecordReading<ModelList> | null {
  const fields = contentOf(body, ["models"]) ?? { models: bareList(body) };
  const listed = modelsIn(fields["models"]);
  if (listed === null) return null;
  const odd = new Odd();
  const byCategory = categoriesIn(fields["categories"]);
  const models = listed.flatMap((entry, index) => modelIn(entry, index, byCategory, odd) ?? []);
  const total = asNumber(fields["total"]);
  const record = {
    ...fields,
    models,
    categories: byCategory,
    total: Number.isNaN(total) ? models.length : total,
  };
  return { record, odd: odd.lines };
}

/** A list of models without anything around it. */
function bareList(body: unknown): unknown[] | null {
  const lists = [body, asRecord(body)["data"], asRecord(body)["result"]].map(jsonIn);
  const isOfModels = (list: unknown): list is unknown[] =>
    Array.isArray(list) && list.some((entry) => "model_key" in asRecord(entry));
  return lists.find(isOfModels) ?? null;
}

/** The entries of a list, or of an object that has the models by their keys. Null for anything else. */
function modelsIn(value: unknown): unknown[] | null {
  const list = jsonIn(value);
  if (Array.isArray(list)) return list;
  const entries = Object.values(asRecord(list));
  if (!entries.some((one) => "credits_cost" in asRecord(one))) return null;
  return Object.entries(asRecord(list)).map(([key, one]) => ({ model_key: key, ...asRecord(one) }));
}

function categoriesIn(value: unknown): Record<string, string[]> {
  const lists = Object.entries(asRecord(value)).filter(([, keys]) => Array.isArray(keys));
  return Object.fromEntries(
    lists.map(([category, keys]) => [category, (keys as unknown[]).filter((key) => typeof key === "string")]),
  );
}

function modelIn(
  entry: unknown,
  index: number,
  byCategory: Readonly<Record<string, readonly string[]>>,
  odd: Odd,
): Model | null {
  const fields = asRecord(entry);
  const key = asText(fields["model_key"]);
  if (key === null) {
    odd.at(`models[${index}]`).add("model_key", fields["model_key"], "the model is left out");
    return null;
  }
  const of = odd.at(`model ${key}`);
  const category = asText(fields["category"]) ?? categoryOfModel(key, byCategory);
  if (category === null) of.add("category", fields["category"], "read as unknown");
  const inputType = inputTypeIn(fields["input_type"]);
  if (inputType === null)
    of.add("input_type", fields["input_type"], "the service decides what the model needs");
  const { parameters: _, ...rest } = fields;
  const parameters = parametersIn(fields["parameters"], of);
  return {
    ...rest,
    model_key: key,
    model_name: words(fields["model_name"], key),
    category: category ?? "unknown",
    // A price that is no amount makes one model unusable, and not the list.
    credits_cost: asNumber(fields["credits_cost"]),
    input_type: inputType ?? "unknown",
    ...(parameters === null ? {} : { parameters }),
  };
}

function categoryOfModel(
  key: string,
  byCategory: Readonly<Record<string, readonly string[]>>,
): string | null {
  return Object.entries(byCategory).find(([, keys]) => keys.includes(key))?.[0] ?? null;
}

/** `text+image`, or the same as a list. */
function inputTypeIn(value: unknown): string | null {
  const isList = Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "string");
  return isList ? value.join("+") : asText(value);
}

/** The parameters, as a list or by their keys; null if there is no list, and then the service checks them. */
function parametersIn(value: unknown, odd: Odd): ModelParameter[] | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "object") {
    odd.add("parameters", value, "the service checks them");
    return null;
  }
  const entries = Array.isArray(value)
    ? value
    : Object.entries(value).map(([key, one]) => ({ key, ...asRecord(one) }));
  const read = entries.flatMap((entry, index) => parameterIn(entry, index, odd) ?? []);
  // Without the names of all of them no name is wrong.
  return read.length < entries.length ? null : read;
}

function parameterIn(entry: unknown, index: number, odd: Odd): ModelParameter | null {
  const fields = typeof entry === "string" ? { key: entry } : asRecord(entry);
  const key = asText(fields["key"]);
  if (key === null) {
    odd.add(
      `parameters[${index}].key`,
      fields["key"],
      "left out, and the service checks the params of the model",
    );
    return null;
  }
  const of = odd.at(`param ${key}`);
  const preset = defaultIn(fields["default"], of);
  const options = optionsIn(fields["options"], of);
  const { default: _, options: __, ...rest } = fields;
  return {
    ...rest,
    key,
    label: words(fields["label"], key),
    type: words(fields["type"], options === null ? "text" : "select"),
    ...(options === null ? {} : { options }),
    ...(preset === null ? {} : { default: preset }),
  };
}

/** A value of a param, which is always sent as text. */
function asValue(value: unknown): string | null {
  if (typeof value === "boolean" || typeof value === "number") return String(value);
  return typeof value === "string" ? value : null;
}

function defaultIn(value: unknown, odd: Odd): string | null {
  if (value === undefined || value === null) return null;
  const read = asValue(value);
  if (read === null) odd.add("default", value, "left out");
  return read;
}

type Options = NonNullable<ModelParameter["options"]>;

/** The values that a param allows: as objects, as plain values, or as labels by value. Null if every value is allowed. */
function optionsIn(value: unknown, odd: Odd): Options | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "object") {
    odd.add("options", value, "the service checks the value");
    return null;
  }
  const entries = Array.isArray(value)
    ? value
    : Object.entries(value).map(([one, label]) => ({ value: one, label }));
  const read = entries.flatMap((entry, index): Options => {
    const fields: Record<string, unknown> = typeof entry === "object" ? asRecord(entry) : { value: entry };
    const option = asValue(fields["value"]);
    if (option !== null) return [{ ...fields, value: option, label: words(fields["label"], option) }];
    odd.add(`options[${index}]`, entry, "left out");
    return [];
  });
  // A list of which nothing is understood forbids nothing.
  return read.length === 0 && entries.length > 0 ? null : read;
}

/** The account, with amounts and counts as received; null if nothing of it is there. */
export function readMe(body: unknown): RecordReading<Me> | null {
  const fields = contentOf(body, ["user", "credits", "subscription", "api_key"]);
  if (fields === null) return null;
  const odd = new Odd();
  const [user, credits, key] = [
    asRecord(fields["user"]),
    asRecord(fields["credits"]),
    asRecord(fields["api_key"]),
  ];
  const id = asText(user["id"]);
  if (id === null) odd.add("user.id", user["id"], "the user is not known");
  const record: Me = {
    ...fields,
    user: { ...user, id: id ?? "", email: words(user["email"], ""), name: asText(user["name"]) },
    credits: { ...credits, balance: credits["balance"], used_this_key: credits["used_this_key"] },
    subscription: subscriptionIn(fields["subscription"], odd),
    api_key: {
      ...key,
      id: words(key["id"], ""),
      name: words(key["name"], ""),
      requests_count: key["requests_count"],
    },
  };
  return { record, odd: odd.lines };
}

/** Null and absent mean that there is none; of anything else the service decides. */
function subscriptionIn(value: unknown, odd: Odd): Me["subscription"] {
  if (value === null || value === undefined) return null;
  const fields = typeof value === "string" ? { status: value } : asRecord(value);
  const [status, plan] = [asText(fields["status"]), asText(fields["plan"])];
  if (status === null) odd.add("subscription.status", fields["status"], "read as unknown");
  if (plan === null) odd.add("subscription.plan", fields["plan"], "the smallest limits apply");
  return {
    ...fields,
    status: status === null ? "unknown" : asDocumented(status, subscriptionStatuses),
    plan: plan === null ? "unknown" : asDocumented(plan, plans),
    credits_per_month: fields["credits_per_month"],
    billing_interval: words(fields["billing_interval"], "unknown"),
    current_period_end: words(fields["current_period_end"], ""),
    cancel_at_period_end: fields["cancel_at_period_end"] === true,
  };
}

/** A task's whole record; null if it is none. `taskId` is the one that was asked for. */
export function readTask(body: unknown, taskId: string, baseUrl?: string): RecordReading<Task> | null {
  const fields = contentOf(body, ["status"]);
  const status = asText(fields?.["status"]);
  if (fields === null || status === null) return null;
  const odd = new Odd();
  const urls = outputsIn(fields);
  const input = fields["input"];
  if (input !== undefined && (typeof input !== "object" || input === null || Array.isArray(input)))
    odd.add("input", input, "left out");
  const charged = asNumber(fields["credits_consumed"]);
  if (Number.isNaN(charged)) odd.add("credits_consumed", fields["credits_consumed"], "not known");
  const record: Task = {
    ...fields,
    task_id: asText(fields["task_id"]) ?? taskId,
    model: words(fields["model"], ""),
    category: words(fields["category"], "unknown") as Category,
    status: asDocumented(status, taskStatuses),
    input: Array.isArray(input) ? {} : { ...asRecord(input) },
    output_urls: urls === undefined || urls === null ? null : addressesIn(urls, baseUrl).usable,
    error: errorWords(fields["error"]),
    credits_consumed: charged,
    created_at: words(fields["created_at"], ""),
    completed_at: asText(fields["completed_at"]),
  };
  return { record, odd: odd.lines };
}

/** A documented word however it is written; any other as it came. */
function asDocumented(received: string, words: readonly string[]): string {
  const word = received.trim().toLowerCase();
  return words.find((one) => one.toLowerCase() === word) ?? received;
}

/** The addresses of a task's outputs, as its record has them. */
export function outputsIn(record: Readonly<Record<string, unknown>>): unknown {
  return record["output_urls"] ?? record["output_url"];
}

/**
 * The addresses that can be used, as a list of texts, one text, or objects with a `url`. A path is one of the service, which is
 * at `baseUrl`. `isPartial`: others cannot be used.
 */
export function addressesIn(value: unknown, baseUrl?: string): { usable: string[]; isPartial: boolean } {
  const found = jsonIn(value);
  const list = Array.isArray(found) ? found : found == null ? [] : [found];
  const all = list.map((one) => (typeof one === "string" ? one : asRecord(one)["url"]));
  const usable = all.flatMap((one) => addressIn(one, baseUrl) ?? []);
  return { usable, isPartial: usable.length < all.length };
}

function addressIn(value: unknown, baseUrl: string | undefined): string | null {
  if (typeof value !== "string") return null;
  const address = value.trim();
  if (/^https?:\/\//i.test(address)) return URL.canParse(address) ? address : null;
  const isPath = address.startsWith("/") && baseUrl !== undefined && URL.canParse(address, baseUrl);
  return isPath ? new URL(address, baseUrl).href : null;
}
