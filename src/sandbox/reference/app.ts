import { Hono } from "hono";
import { html } from "hono/html";
import { endpoints } from "../../api/endpoints.js";
import { planLimits } from "../../api/plans.js";
import type { SandboxModel } from "../catalogue/model.js";
import { loopbackOnly } from "../http/http.js";
import { sandboxKey } from "../state/state.js";
import { type Operation, openApi, operations, refusalsOf } from "./openapi.js";
import { componentSchemas, type Schema, type SchemaName } from "./schemas.js";

const headers = {
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

/** The service's reference, for programs at /openapi.json and for people at /docs. Needs no key: it has no secrets. */
export function referenceApp(models: readonly SandboxModel[]): Hono {
  const app = new Hono();
  app.get("/", loopbackOnly, (context) => context.redirect("/docs"));
  app.get("/openapi.json", loopbackOnly, (context) => context.json(openApi()));
  app.get("/docs", loopbackOnly, (context) => context.html(referencePage(models), 200, headers));
  app.get("/docs/style.css", loopbackOnly, (context) =>
    context.body(style, 200, { ...headers, "Content-Type": "text/css; charset=utf-8" }),
  );
  return app;
}

/** A fragment of HTML. Inserted values are escaped unless they are fragments themselves. */
type Piece = ReturnType<typeof html>;

/** The whole reference on one page, made from the same schemas and tables as the service. */
export function referencePage(models: readonly SandboxModel[]): Piece {
  const schemas = componentSchemas();
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Content generation service: reference</title>
<link rel="stylesheet" href="/docs/style.css">
</head>
<body><main>
<h1>Content generation service</h1>
<p class="quiet">This is the sandbox: the whole service on this machine, at no cost. For programs: <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
<nav>${operations.map(({ endpoint }) => html`<a href="#${endpoint}">${endpoint}</a>`)}
<a href="#records">Records</a><a href="#limits">Limits</a><a href="#models">Models</a></nav>
${authentication()}
${operations.map((operation) => operationPiece(operation, schemas))}
<h2 id="records">Records</h2>
${(["Task", "Model", "ModelParameter"] as const).map((name) => record(name, schemas[name]))}
${limits()}
${modelTable(models)}
</main></body>
</html>`;
}

function authentication(): Piece {
  return html`<h2>Authentication</h2>
<p>Every request of the service carries a key, as <code>Authorization: Bearer KEY</code> or as <code>X-API-Key: KEY</code>; when both are sent, Authorization counts. This sandbox always takes the public key:</p>
<pre>export BULKGEN_API_KEY=${sandboxKey}</pre>
<p>Errors of a request are checked in this order: its path, its method, no key, the key's form, an unknown or revoked key, the subscription, the limits, and then the request itself.</p>`;
}

function operationPiece(operation: Operation, schemas: Record<SchemaName, Schema>): Piece {
  const { endpoint, summary, parameters, body, answers } = operation;
  const { method, path } = endpoints[endpoint];
  const asked = parameters.map(({ name, schema, required, description }) => [
    html`<code>${name}</code>`,
    schema.enum ? schema.enum.join(", ") : schema.type,
    required ? "required" : "",
    description,
  ]);
  return html`<h2 id="${endpoint}"><span class="method">${method}</span> <code>${path}</code></h2>
<p>${summary}.</p>
${asked.length > 0 ? html`<h3>Parameters</h3>${table(["Name", "Value", "", "Meaning"], asked)}` : ""}
${body ? html`<h3>Body (JSON)</h3>${fields(schemas[body])}${example()}` : ""}
<h3>200</h3>${fields(schemas[answers])}
<h3>Errors</h3>${table(
    ["Status", "Code", "When"],
    refusalsOf(operation).map(({ status, code, condition }) => [
      status,
      html`<code>${code}</code>`,
      condition,
    ]),
  )}`;
}

function example(): Piece {
  const body = JSON.stringify({ model: "aurora-image", prompt: "A lighthouse at dawn" });
  return html`<pre>curl $BULKGEN_BASE_URL${endpoints.generate.path} -H "Authorization: Bearer $BULKGEN_API_KEY" \\
  -H "Content-Type: application/json" -d '${body}'</pre>`;
}

function record(name: SchemaName, schema: Schema): Piece {
  return html`<h3 id="${name}">${name}</h3>${fields(schema)}`;
}

/** The fields of a record, those of the objects in it by their path. */
function fields(schema: Schema): Piece {
  return table(["Field", "Type", "Meaning"], rowsOf(schema, ""));
}

function rowsOf(schema: Schema, prefix: string): Cell[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix + name;
    const inner = field.properties ? field : field.anyOf?.find((option) => option.properties);
    const row = [html`<code>${path}</code>`, typeOf(field), field.description ?? ""];
    return inner ? [...(inner === field ? [] : [row]), ...rowsOf(inner, `${path}.`)] : [row];
  });
}

function typeOf(schema: Schema): string {
  if (schema.enum) return schema.enum.join(", ");
  if (schema.$ref) return schema.$ref.split("/").at(-1) ?? "";
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.type === "array") return `array of ${schema.items ? typeOf(schema.items) : "anything"}`;
  const type = [schema.type ?? "anything"].flat().join(" or ");
  return schema.format ? `${type}, ${schema.format}` : type;
}

function limits(): Piece {
  const rows = Object.entries(planLimits).map(([plan, { perMinute, perDay }]) => [
    plan,
    perMinute ?? "unlimited",
    perDay ?? "unlimited",
  ]);
  return html`<h2 id="limits">Limits</h2>${table(["Plan", "Requests a minute", "Requests a day"], rows)}`;
}

function modelTable(models: readonly SandboxModel[]): Piece {
  const rows = models.map(({ key, category, inputType, credits, parameters }) => [
    html`<code>${key}</code>`,
    category,
    inputType,
    credits,
    parameters
      .map((parameter) => `${parameter.key}: ${parameter.options.map((o) => o.value).join(" ")}`)
      .join("; "),
  ]);
  return html`<h2 id="models">Models</h2>${table(["Key", "Category", "Input", "Credits", "Parameters"], rows)}`;
}

type Cell = string | number | Piece;

function table(heads: readonly string[], rows: readonly (readonly Cell[])[]): Piece {
  return html`<div class="table"><table>
<tr>${heads.map((head) => html`<th>${head}</th>`)}</tr>
${rows.map((cells) => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`)}
</table></div>`;
}

/** The style sheet of the reference. */
export const style = `
:root { color-scheme: light dark; --ground: #f5f5f2; --sheet: #fff; --line: #e4e3dd; --ink: #1d1f23; --quiet: #63666d; --accent: #4456c7; --code: #f0f0ec; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #121316; --sheet: #1b1d21; --line: #2c2f35; --ink: #ececea; --quiet: #9da1a9; --accent: #9aa8ff; --code: #15171a; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.55 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
main { max-width: 900px; margin: 0 auto; padding: 32px 20px 80px; }
h1 { font-size: 26px; letter-spacing: -.02em; margin: 0 0 6px; }
h2 { font-size: 19px; letter-spacing: -.01em; margin: 44px 0 10px; padding-top: 8px; }
h3 { font-size: 14px; margin: 20px 0 6px; color: var(--quiet); font-weight: 600; }
p { margin: 0 0 12px; }
nav { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 14px 0 0; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; overflow-x: auto; margin: 0 0 12px; }
.table { overflow-x: auto; background: var(--sheet); border: 1px solid var(--line); border-radius: 8px; margin: 0 0 12px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 7px 14px; border-top: 1px solid var(--line); }
tr:first-child th { border-top: 0; }
th { font-size: 12px; font-weight: 600; color: var(--quiet); }
td:first-child { white-space: nowrap; }
.method { color: var(--accent); font-weight: 650; }
.quiet { color: var(--quiet); }
`;
