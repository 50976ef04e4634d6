import type { Endpoint } from "../../api/endpoints.js";
import { errorTable } from "../../api/errors.js";
import { categories } from "../../api/records.js";
import type { SchemaName } from "./schemas.js";

export interface Operation {
  endpoint: Endpoint;
  summary: string;
  description: string;
  tag: (typeof tags)[number]["name"];
  answers: SchemaName;
  body?: SchemaName;
  parameters: readonly Parameter[];
  /** What it can answer instead, besides the errors of the service's table. */
  alsoRefuses: readonly { status: number; code: string; condition: string }[];
}

interface Parameter {
  name: string;
  in: "query" | "path";
  required: boolean;
  description: string;
  schema: { type: string; format?: string; enum?: readonly string[]; default?: boolean };
}

export const tags = [
  { name: "Generation", description: "Make an image, a video or a sound, and get it." },
  { name: "Account", description: "Credits, subscription and use of the key." },
] as const;

const broken = { status: 500, code: "INTERNAL_ERROR", condition: "an internal server error" };
const invalid = { status: 400, code: "INVALID_REQUEST", condition: "the request is malformed or incomplete" };

export const operations: readonly Operation[] = [
  {
    endpoint: "generate",
    summary: "Make an image, a video or a sound",
    description:
      "Creates a task and takes its credits at once. The task is processing until GET task says completed or failed; a failed task gives its credits back.",
    tag: "Generation",
    answers: "Creation",
    body: "GenerateRequest",
    parameters: [],
    alsoRefuses: [
      { status: 413, code: "PAYLOAD_TOO_LARGE", condition: "the body has more than a mebibyte" },
      { status: 415, code: "UNSUPPORTED_MEDIA_TYPE", condition: "the body is not declared as JSON" },
    ],
  },
  {
    endpoint: "task",
    summary: "Get a task",
    description:
      "Answers 200 in every status, failed ones included. Poll 2 seconds after creation, then at growing intervals of up to 10 seconds, for at most 10 minutes; completed and failed are final.",
    tag: "Generation",
    answers: "Task",
    parameters: [
      {
        name: "taskId",
        in: "path",
        required: true,
        description: "The task_id that POST generate answered.",
        schema: { type: "string", format: "uuid" },
      },
    ],
    alsoRefuses: [],
  },
  {
    endpoint: "models",
    summary: "List the models",
    description: "Every model with its category, the inputs it needs, its parameters and its base cost.",
    tag: "Generation",
    answers: "ModelList",
    parameters: [
      {
        name: "include_parameters",
        in: "query",
        required: false,
        description: "Whether each model comes with its parameters.",
        schema: { type: "boolean", default: true },
      },
      {
        name: "category",
        in: "query",
        required: false,
        description: "Only the models of this category.",
        schema: { type: "string", enum: categories },
      },
    ],
    alsoRefuses: [broken],
  },
  {
    endpoint: "me",
    summary: "See the user, credits, subscription and key",
    description: "Works without an active subscription too.",
    tag: "Account",
    answers: "Me",
    parameters: [],
    alsoRefuses: [broken],
  },
];

/** Every refusal of an operation, by rising status. */
export function refusalsOf(operation: Operation): { status: number; code: string; condition: string }[] {
  const { endpoint } = operation;
  const served = errorTable.filter((row) => row.endpoint === "all" || row.endpoint === endpoint);
  // Without a body or a query nothing can be wrong with either, and me answers without a subscription.
  const never = endpoint === "me" ? ["INVALID_REQUEST", "SUBSCRIPTION_REQUIRED"] : ["INVALID_REQUEST"];
  const possible = served.filter((row) => !never.includes(row.code));
  const malformed = endpoint === "generate" || endpoint === "models" ? [invalid] : [];
  return [...possible, ...malformed, ...operation.alsoRefuses].sort(
    (left, right) => left.status - right.status,
  );
}

/** `No key was supplied.` of `no key was supplied` */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
