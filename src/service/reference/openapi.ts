import { endpoints } from "../../api/endpoints.js";
import { sandboxKey } from "../../api/key.js";
import { examples, failedExample, processingExample } from "./examples.js";
import { introduction, operationGuide, type Reference } from "./guide.js";
import { type Operation, operations, refusalsOf, sentence, tags } from "./operations.js";
import { componentSchemas, refTo, type SchemaName } from "./schemas.js";

/** The service as an OpenAPI 3.1 document. */
export function openApi(reference: Reference, origin: string): Record<string, unknown> {
  return {
    openapi: "3.1.0",
    info: {
      title: "Content generation service (bulkgen sandbox)",
      version: "1",
      description: introduction(origin),
      license: { name: "MIT", identifier: "MIT" },
    },
    tags,
    servers: [{ url: "/" }],
    security: [{ bearer: [] }, { apiKey: [] }],
    paths: Object.fromEntries(
      operations.map((operation) => [pathOf(operation), item(operation, origin, reference)]),
    ),
    components: {
      schemas: componentSchemas(),
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          description: `\`svc_\` and 32 letters or digits. Every sandbox takes \`${sandboxKey}\`.`,
          "x-sandbox-key": sandboxKey,
        },
        apiKey: { type: "apiKey", in: "header", name: "X-API-Key" },
      },
    },
  };
}

function pathOf({ endpoint }: Operation): string {
  return endpoints[endpoint].path.replace(/:(\w+)/g, "{$1}");
}

function item(operation: Operation, origin: string, reference: Reference): Record<string, unknown> {
  const { endpoint, summary, tag, body, parameters, answers } = operation;
  const shown = examples(origin);
  const json = (name: SchemaName, example = shown[name]) => ({
    "application/json": { schema: { $ref: refTo(name) }, ...examplesOf(name, example) },
  });
  const refusals = refusalsOf(operation);
  const errors = [...new Set(refusals.map(({ status }) => status))].map((status) => {
    const rows = refusals.filter((row) => row.status === status);
    const description = rows.map(({ code, condition }) => `${code}: ${condition}`).join("; ");
    const error = { code: rows[0]?.code, message: sentence(rows[0]?.condition ?? "") };
    return [String(status), { description, ...headersOf(status), content: json("Error", { error }) }];
  });
  return {
    [endpoints[endpoint].method.toLowerCase()]: {
      operationId: endpoint,
      summary,
      description: operationGuide(operation, origin, reference),
      tags: [tag],
      ...(parameters.length > 0 ? { parameters } : {}),
      ...(body ? { requestBody: { required: true, content: json(body) } } : {}),
      responses: { "200": { description: summary, content: json(answers) }, ...Object.fromEntries(errors) },
    },
  };
}

/** A task is shown in each of its states. */
function examplesOf(name: SchemaName, example: unknown): Record<string, unknown> {
  if (name !== "Task") return { example };
  const examples = {
    completed: { value: example },
    processing: { summary: "While it is processing", value: processingExample },
    failed: { summary: "A task that failed", value: failedExample },
  };
  return { examples };
}

/** The headers that tell a client what to do about a status. */
function headersOf(status: number) {
  if (status === 429) {
    return {
      headers: {
        "Retry-After": { description: "Seconds to wait", schema: { type: "integer", minimum: 1 } },
      },
    };
  }
  if (status !== 401) return {};
  return {
    headers: { "WWW-Authenticate": { description: "Bearer", schema: { type: "string", const: "Bearer" } } },
  };
}
