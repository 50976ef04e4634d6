import { type Endpoint, endpoints } from "../../api/endpoints.js";
import { errorTable } from "../../api/errors.js";
import { categories } from "../../api/records.js";
import { componentSchemas, refTo, type SchemaName } from "./schemas.js";

export interface Operation {
  endpoint: Endpoint;
  summary: string;
  answers: SchemaName;
  body?: SchemaName;
  parameters: readonly Parameter[];
  /** What it can answer instead, besides the errors of the service's table. */
  alsoRefuses: readonly { status: number; code: string; condition: string }[];
}

export interface Parameter {
  name: string;
  in: "query" | "path";
  required: boolean;
  description: string;
  schema: { type: string; format?: string; enum?: readonly string[]; default?: boolean };
}

const badMethod = { status: 405, code: "METHOD_NOT_ALLOWED", condition: "the path answers another method" };
const invalid = { status: 400, code: "INVALID_REQUEST", condition: "the request is malformed or incomplete" };

export const operations: readonly Operation[] = [
  {
    endpoint: "generate",
    summary: "Make an image, a video or a sound",
    answers: "Creation",
    body: "GenerateRequest",
    parameters: [],
    alsoRefuses: [
      badMethod,
      { status: 413, code: "PAYLOAD_TOO_LARGE", condition: "the body has more than a mebibyte" },
      { status: 415, code: "UNSUPPORTED_MEDIA_TYPE", condition: "the body is not declared as JSON" },
    ],
  },
  {
    endpoint: "task",
    summary: "Get a task",
    answers: "Task",
    parameters: [
      {
        name: "taskId",
        in: "path",
        required: true,
        description: "The task_id that POST generate answered.",
        schema: { type: "string" },
      },
    ],
    alsoRefuses: [badMethod],
  },
  {
    endpoint: "models",
    summary: "List the models",
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
    alsoRefuses: [badMethod],
  },
  {
    endpoint: "me",
    summary: "See the user, credits, subscription and key",
    answers: "Me",
    parameters: [],
    alsoRefuses: [badMethod],
  },
];

/** Every refusal of an operation, by rising status. */
export function refusalsOf(operation: Operation): { status: number; code: string; condition: string }[] {
  const { endpoint } = operation;
  const served = errorTable.filter((row) => row.endpoint === "all" || row.endpoint === endpoint);
  // Without a body or a query nothing can be wrong with either.
  const possible = served.filter((row) => row.code !== "INVALID_REQUEST");
  const malformed = endpoint === "generate" || endpoint === "models" ? [invalid] : [];
  return [...possible, ...malformed, ...operation.alsoRefuses].sort(
    (left, right) => left.status - right.status,
  );
}

/** The service as an OpenAPI 3.1 document. */
export function openApi(): Record<string, unknown> {
  return {
    openapi: "3.1.0",
    info: {
      title: "Content generation service (bulkgen sandbox)",
      version: "1",
      description: "Tasks that make images, videos and sounds, on this machine, at no cost.",
    },
    servers: [{ url: "/" }],
    security: [{ bearer: [] }, { apiKey: [] }],
    paths: Object.fromEntries(operations.map((operation) => [pathOf(operation), item(operation)])),
    components: {
      schemas: componentSchemas(),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "svc_ and 32 letters or digits" },
        apiKey: { type: "apiKey", in: "header", name: "X-API-Key" },
      },
    },
  };
}

function pathOf({ endpoint }: Operation): string {
  return endpoints[endpoint].path.replace(/:(\w+)/g, "{$1}");
}

function item(operation: Operation): Record<string, unknown> {
  const { endpoint, summary, body, parameters, answers } = operation;
  const json = (name: SchemaName) => ({ "application/json": { schema: { $ref: refTo(name) } } });
  const refusals = refusalsOf(operation);
  const errors = [...new Set(refusals.map(({ status }) => status))].map((status) => {
    const rows = refusals.filter((row) => row.status === status);
    const description = rows.map(({ code, condition }) => `${code}: ${condition}`).join("; ");
    return [String(status), { description, content: json("Error") }];
  });
  return {
    [endpoints[endpoint].method.toLowerCase()]: {
      operationId: endpoint,
      summary,
      ...(parameters.length > 0 ? { parameters } : {}),
      ...(body ? { requestBody: { required: true, content: json(body) } } : {}),
      responses: { "200": { description: summary, content: json(answers) }, ...Object.fromEntries(errors) },
    },
  };
}
