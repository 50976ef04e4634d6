import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import type { Json, JsonObject } from "../provider.js";
import { queryFault } from "./query.js";
import { templateFault } from "./template.js";

/**
 * How a provider's API works, as data: what is sent, and where ref, status, outputs, error and cost stand in its answers. The
 * files in `../descriptions` are such descriptions, and models of `kind: http` contain parts of one.
 */
const text = z.string({ error: ({ input }) => (input === undefined ? "is missing" : "must be text") });

const query = text.superRefine((given, { addIssue }) => {
  const fault = queryFault(given);
  if (fault !== null)
    addIssue({ code: "custom", message: `is no query (JMESPath, such as data[].url): ${fault}` });
});

const template = text.superRefine((given, { addIssue }) => {
  const fault = templateFault(given);
  if (fault !== null) addIssue({ code: "custom", message: `is no template: ${fault}` });
});

/** Where something stands: a query of the answer's JSON, or a header. */
const where = z.union([query, z.strictObject({ header: z.string() })], {
  error: "must be a query such as data.id, or { header: NAME }",
});
export type Where = z.infer<typeof where>;

const json: z.ZodType<Json> = z.lazy(() =>
  z.union([z.null(), z.boolean(), z.number(), template, z.array(json), z.record(z.string(), json)], {
    error: "must be text, a number, true, false, null, a list, or fields",
  }),
);

/** Fields of a request's body. */
const fields = z.record(z.string(), json, { error: "must be the fields of the request" });

const duration = text.regex(/^\d+(ms|s|m|h)$/, "must be a time such as 30s or 2m");

/** A time such as `30s`, in milliseconds. */
export function msOf(time: string): number {
  const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
  return Number.parseInt(time, 10) * (units[time.replace(/^\d+/, "")] ?? 1);
}

const pattern = text.superRefine((given, { addIssue }) => {
  try {
    new RegExp(given);
  } catch (error) {
    addIssue({ code: "custom", message: `must be a regular expression: ${(error as Error).message}` });
  }
});

const words = z
  .array(z.string(), { error: "must be a list of words, such as [Pending, Running]" })
  .default([]);
const headers = z.record(z.string(), template);

/** `4xx` stands for all from 400 to 499. */
const statusPattern = z.union(
  [
    z.int().refine((status) => status >= 100 && status <= 599, "must be a status such as 429, or 4xx or 5xx"),
    z.enum(["2xx", "3xx", "4xx", "5xx"]),
  ],
  {
    error: "must be a status such as 429, or 4xx or 5xx",
  },
);

const meanings = ["moderation", "input", "parameter", "provider", "final", "later", "unknown"] as const;

/** What an answer means. The first rule that fits decides. */
const rule = z.strictObject({
  status: z
    .union([statusPattern, z.array(statusPattern)], { error: "must be a status or a list of them" })
    .optional(),
  /** Fits a part of the error's code. */
  code: pattern.optional(),
  /**
   * `final`: the account or the key is at fault, and nothing was made. `later`: certainly not accepted. `unknown`: it may have
   * been accepted. The others are a refusal's kind.
   */
  is: z.enum(meanings, { error: `must be one of ${meanings.join(", ")}` }),
  billed: z.boolean().optional(),
  /** How long to wait if the answer does not say. */
  after: duration.optional(),
  scope: z.enum(["job", "provider"]).optional(),
});
export type Rule = z.infer<typeof rule>;

const errorPlaces = z.union(
  [
    query,
    z.strictObject({
      code: query.optional(),
      message: query.optional(),
      /** How long to wait: seconds, or text such as 17s. */
      delay: query.optional(),
    }),
  ],
  { error: "must be a query of the error's text, or { code, message, delay }" },
);
export type ErrorPlaces = z.infer<typeof errorPlaces>;

/** What a job cost; in the provider's credits unless a unit is named. */
const cost = z.union([query, z.strictObject({ amount: where, unit: z.string() })], {
  error: "must be a query, or { amount, unit }",
});
export type CostPlace = z.infer<typeof cost>;

/** An address: a path below the base URL, a whole address, or a query of the answer that contains one. */
const address = text.superRefine((given, { addIssue }) => {
  const fault = isTemplate(given) ? templateFault(given) : queryFault(given);
  if (fault !== null)
    addIssue({ code: "custom", message: `must be a path (/…), an address (https://…) or a query: ${fault}` });
});

export function isTemplate(addressOrQuery: string): boolean {
  return /^(\/|https?:\/\/|\{)/.test(addressOrQuery);
}

const target = text.superRefine((given, { addIssue }) => {
  const fault = isTemplate(given) ? templateFault(given) : "it begins with neither / nor https://";
  if (fault !== null)
    addIssue({ code: "custom", message: `must be a path (/…) or an address (https://…): ${fault}` });
});

const submitPart = z
  .strictObject({
    /** For which models: the first part that fits is taken. `media` is an input that the job has. */
    when: z
      .strictObject({
        category: z.string().optional(),
        media: z.enum(["image", "video", "audio"]).optional(),
      })
      .optional(),
    post: target,
    headers: headers.optional(),
    /** The JSON that is sent … */
    body: fields.optional(),
    /** … or the fields of a form (`multipart/form-data`), where `{ file: image }` is a file. */
    form: fields.optional(),
    /** The provider's name for the job: `id` by default, or of an answer at once the header x-request-id or request-id. */
    ref: where.optional(),
    /** Where to ask how the job is going. */
    poll: address.optional(),
    /** Where the result will be, if that is another address. */
    result: address.optional(),
    cancel: address.optional(),
    outputs: query.optional(),
    cost: cost.optional(),
  })
  .refine(({ body, form }) => body === undefined || form === undefined, "has either body or form");
export type SubmitPart = z.infer<typeof submitPart>;

const pollPart = z
  .strictObject({
    get: target.optional(),
    /** `status` by default, if there are words for it. */
    status: query.optional(),
    running: words,
    done: words,
    failed: words,
    moderated: words,
    result: address.optional(),
    outputs: query.optional(),
    /** What the provider says about a running job, for people. */
    note: query.optional(),
    error: errorPlaces.optional(),
    errors: z.array(rule).default([]),
    cost: cost.optional(),
  })
  .refine(
    ({ status, done }) => status === undefined || done.length > 0,
    "needs `done`: the words of status that mean that it has ended well",
  );
export type PollPart = z.infer<typeof pollPart>;

const cancelPart = z.strictObject({
  method: z.enum(["POST", "PUT", "DELETE", "GET"]).default("POST"),
  /** A query of the answer that says true or false. */
  billed: query.optional(),
});
export type CancelPart = z.infer<typeof cancelPart>;

const findPart = z.strictObject({
  get: target,
  /** The jobs, each an object. */
  list: query,
  /** The address of the next page. */
  next: query.optional(),
  /** Of a job in the list: when it was made, as ISO 8601 or as seconds since 1970. */
  at: query,
  /** What in the list must be what in the request: a query of each. What the request does not have is not compared. */
  match: z.record(query, query),
  /** Where these stand in a job of the list: by default where they stand in the answer to the submit. */
  ref: query.optional(),
  poll: address.optional(),
  cancel: address.optional(),
  /** How long after the submit a job that is not in the list was certainly never accepted. Without it, that proves nothing. */
  complete: duration.optional(),
});
export type FindPart = z.infer<typeof findPart>;

const checkPart = z.strictObject({ get: target });

/** What both a description and a model of `kind: http` may say. */
const parts = {
  poll: pollPart.optional(),
  cancel: cancelPart.optional(),
  error: errorPlaces.optional(),
  errors: z.array(rule).optional(),
};

/** The hosts that get the key besides the one that takes the jobs: `bfl.ai` stands for all below it, too. */
export const hosts = z
  .array(z.string().regex(/^[\w-]+(\.[\w-]+)+$/, "must be a host such as bfl.ai"))
  .optional();

export const description = z.strictObject({
  describe: z.string(),
  base_url: z.url().optional(),
  key_env: z.string().optional(),
  /** Whether nothing is sent without a key. By default if it has a `key_env`. */
  needs_key: z.boolean().optional(),
  concurrency: z.int().positive().optional(),
  timeout: duration.optional(),
  hosts,
  headers: headers.default({}),
  /** Fields of a model's `request` that choose the address, and are not sent. */
  endpoint: z.array(z.string()).default([]),
  /** Fields of which a model's `request` must have one: those of `endpoint` by default. */
  needs: z.array(z.string()).optional(),
  submit: z.array(submitPart).min(1),
  /** Of each part that has none of its own. */
  outputs: query.optional(),
  cost: cost.optional(),
  ...parts,
  find: findPart.optional(),
  check: checkPart.optional(),
});
export type Description = z.infer<typeof description>;

/** What a model of a described provider may say. Each part may be read again: what is read is what was written. */
export const describedModel = { request: fields.optional(), outputs: query.optional() };

/** What a model of `kind: http` may say: also what its provider's description leaves open. */
export const httpModel = { ...describedModel, submit: submitPart.optional(), ...parts };
const model = z.object(httpModel);
export type HttpModel = z.infer<typeof model>;

/** What a job's model says, with what it leaves open. */
export function readModel(details: JsonObject): HttpModel {
  return model.parse(details);
}

/** Reads a description. Throws an error that says where it is wrong. */
export function readDescription(path: string): Description {
  const read = description.safeParse(parse(readFileSync(path, "utf8")));
  if (read.success) return read.data;
  const { path: place, message } = read.error.issues[0] ?? { path: [], message: "" };
  throw new Error(`${place.join(".")} ${message}`.trim());
}
