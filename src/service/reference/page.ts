import { html } from "hono/html";
import prettyMilliseconds from "pretty-ms";
import { endpoints } from "../../api/endpoints.js";
import { sandboxKey } from "../../api/key.js";
import { planLimits } from "../../api/plans.js";
import type { ServiceModel } from "../models/model.js";
import { examples, failedExample, processingExample } from "./examples.js";
import { type Operation, operations, refusalsOf, sentence } from "./openapi.js";
import { componentSchemas, type Schema, type SchemaName } from "./schemas.js";

/** A fragment of HTML. Inserted values are escaped unless they are fragments themselves. */
type Piece = ReturnType<typeof html>;

export interface Reference {
  models: readonly ServiceModel[];
  /** How long a signed output URL is good, in milliseconds. */
  urlMs: number;
}

interface Page extends Reference {
  /** The address under which the page was requested; its commands use it. */
  origin: string;
}

interface Section {
  id: string;
  title: string;
  /** The title as a heading, if it is more than plain text. */
  heading?: Piece;
  body: Piece;
}

/** The whole reference on one page, made from the same schemas and tables as the service. */
export function referencePage(page: Page): Piece {
  const schemas = componentSchemas();
  const sections: Section[] = [
    firstRequest(page),
    catalogue(page),
    authentication(),
    ...operations.map((operation) => operationSection(operation, schemas, page)),
    polling(page),
    errors(),
    limits(),
    rehearsing(),
  ];
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Content generation service: reference</title>
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<nav aria-label="Contents"><ul>${sections.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></nav>
<main>
<h1>Content generation service</h1>
<p class="lead">This is the sandbox: the whole service on this machine, at no cost. What it makes are posters, clips and tunes that stand for a generation; they do not show what the prompt says.</p>
<p class="quiet">For programs: <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
${sections.map(({ id, title, heading, body }) => html`<section id="${id}"><h2>${heading ?? title}</h2>${body}</section>`)}
</main>
</body>
</html>`;
}

function firstRequest({ origin }: Page): Section {
  const body = JSON.stringify(examples(origin).GenerateRequest);
  const make = `export BULKGEN_BASE_URL=${origin}
export BULKGEN_API_KEY=${sandboxKey}
curl "$BULKGEN_BASE_URL${endpoints.generate.path}" \\
  -H "Authorization: Bearer $BULKGEN_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${body}'`;
  const get = `curl "$BULKGEN_BASE_URL${endpoints.task.path.replace(":taskId", "TASK_ID")}" \\
  -H "Authorization: Bearer $BULKGEN_API_KEY"`;
  return {
    id: "start",
    title: "Your first request",
    body: html`<p>Paste this into a terminal. The answer has a <code>task_id</code>:</p>
<pre>${make}</pre>
<p>A second later, put it in place of <code>TASK_ID</code> to get the address of the picture:</p>
<pre>${get}</pre>`,
  };
}

function catalogue({ models }: Page): Section {
  const rows = models.map(({ key, category, inputType, credits, parameters }) => [
    html`<code>${key}</code>`,
    category,
    inputType,
    credits,
    parameters.length === 0
      ? "none"
      : html`<ul class="plain">${parameters.map(
          ({ key, options, default: preset }) =>
            html`<li><code>${key}</code> ${
              options.length === 0
                ? "any value"
                : options.map(({ value }, index) => [
                    index > 0 ? ", " : "",
                    value === preset ? html`<strong>${value}</strong>` : value,
                  ])
            }</li>`,
        )}</ul>`,
  ]);
  return {
    id: "models",
    title: "Models",
    body: html`<p>The default of each parameter is in bold. All values are strings.</p>
${table(["Model", "Makes", "Needs", "Credits", "Parameters"], rows)}`,
  };
}

function authentication(): Section {
  return {
    id: "authentication",
    title: "Authentication",
    body: html`<p>Every request carries a key, as <code>Authorization: Bearer KEY</code> or as <code>X-API-Key: KEY</code>. When both are sent, Authorization counts. A key is <code>svc_</code> and 32 letters or digits.</p>
<p>This sandbox always takes the public key <code>${sandboxKey}</code>. Make keys of your own in the dashboard, whose link <code>bulkgen sandbox</code> prints, or with <code>bulkgen sandbox keys create NAME</code>.</p>`,
  };
}

function operationSection(
  operation: Operation,
  schemas: Record<SchemaName, Schema>,
  { origin }: Page,
): Section {
  const { endpoint, summary, description, parameters, body, answers } = operation;
  const { method, path } = endpoints[endpoint];
  const shown = examples(origin);
  const asked = parameters.map(({ name, schema, required, description }) => [
    html`<code>${name}</code>`,
    `${schema.enum ? schema.enum.join(", ") : typeOf(schema)}${required ? ", required" : ""}`,
    description,
  ]);
  const codes = [...new Set(refusalsOf(operation).map(({ code }) => code))];
  const others =
    endpoint === "models"
      ? (["Model", "ModelParameter"] as const).map((name) => html`<h3>${name}</h3>${fields(schemas[name])}`)
      : "";
  return {
    id: endpoint === "models" ? "list-models" : endpoint,
    title: `${method} ${path.split("/").slice(3).join("/")}`,
    heading: html`<span class="method">${method}</span> <code>${path}</code>`,
    body: html`<p><strong>${summary}.</strong> ${description}</p>
${asked.length > 0 ? html`<h3>Parameters</h3>${table(["Name", "Type", "Meaning"], asked)}` : ""}
${body ? html`<h3>Body (JSON)</h3>${fields(schemas[body])}${json(shown[body])}` : ""}
<h3>Answer</h3>${fields(schemas[answers])}
${endpoint === "models" || endpoint === "me" ? folded("An example", shown[answers]) : json(shown[answers])}
${endpoint === "task" ? [folded("The same task while it is processing", processingExample), folded("A task that failed", failedExample)] : ""}${others}
<p class="quiet">Errors: ${codes.map((code, index) => [index > 0 ? ", " : "", html`<a href="#${code}"><code>${code}</code></a>`])}.</p>`,
  };
}

function folded(title: string, example: unknown): Piece {
  return html`<details><summary>${title}</summary>${json(example)}</details>`;
}

function polling({ urlMs }: Page): Section {
  return {
    id: "polling",
    title: "Polling and downloading",
    body: html`<p>Ask for a task 2 seconds after it was created, then at intervals that grow to 10 seconds, and stop at <code>completed</code> or <code>failed</code>. Give up after 10 minutes. Each poll counts against the plan's limits.</p>
<p>Output addresses are signed and are good for ${prettyMilliseconds(urlMs, { verbose: true })}. They need no key. When one has expired, GET the task again for a new one. Download what you want to keep.</p>`,
  };
}

/** Every refusal once, with the endpoints that can answer it. */
function errors(): Section {
  const rows = new Map<string, { status: number; code: string; conditions: Set<string>; of: string[] }>();
  for (const operation of operations) {
    for (const { status, code, condition } of refusalsOf(operation)) {
      const row = rows.get(code) ?? { status, code, conditions: new Set<string>(), of: [] };
      row.conditions.add(condition);
      row.of.push(operation.endpoint);
      rows.set(code, row);
    }
  }
  const sorted = [...rows.values()].sort((left, right) => left.status - right.status);
  const cells = sorted.map(({ status, code, conditions, of }) => [
    html`<code id="${code}">${code}</code>`,
    status,
    of.length === operations.length ? "all" : of.join(", "),
    [...conditions].map(sentence).join(" "),
  ]);
  return {
    id: "errors",
    title: "Errors",
    body: html`<p>Every error has this body:</p>
${json(examples("").Error)}
${table(["Code", "Status", "Endpoints", "When"], cells)}
<p>Errors are checked in this order: the path (404 <code>NOT_FOUND</code>), its method (405 <code>METHOD_NOT_ALLOWED</code>), no key, the key's form, an unknown or revoked key, the subscription, the limits, and then the request itself. A refused request costs no credits.</p>`,
  };
}

function limits(): Section {
  const rows = Object.entries(planLimits).map(([plan, { perMinute, perDay }]) => [
    plan,
    perMinute ?? "unlimited",
    perDay ?? "unlimited",
  ]);
  return {
    id: "limits",
    title: "Limits",
    body: html`${table(["Plan", "Requests a minute", "Requests a day"], rows)}
<p>Every request with a good key counts, polls included, for all keys of an account together. Beyond a limit the answer is 429 <code>RATE_LIMITED</code>, with the seconds to wait in <code>Retry-After</code>.</p>`,
  };
}

function rehearsing(): Section {
  return {
    id: "rehearse",
    title: "Rehearse what goes wrong",
    body: html`<p>A prompt with <code>[[moderation]]</code> or <code>[[provider-error]]</code> makes a task that fails in that way. Its credits come back.</p>
<p>Credits, plan and subscription are changed while the sandbox runs:</p>
<pre>bulkgen sandbox account --credits 3 --plan Starter
bulkgen sandbox account --subscription past_due
bulkgen sandbox account --subscription active</pre>
<p>Generating needs an active subscription; one that is canceled is good until its period ends. When it is not good, GET me still shows it, with its status. A service may show null instead: the switch <code>subscription.shownWhenNotGood</code> rehearses that. See <code>bulkgen sandbox --help</code> for <code>--switches</code> and <code>--faults</code>.</p>`,
  };
}

/** The fields of a record, those of the objects in it by their path. */
function fields(schema: Schema): Piece {
  return table(["Field", "Type", "Meaning"], rowsOf(schema, ""));
}

function rowsOf(schema: Schema, prefix: string): Cell[][] {
  // Answers have all their fields; in a request only some are required.
  const isRequest = schema.required?.length === 1;
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix + name;
    const inner = [field, ...(field.anyOf ?? [])].find(hasFields);
    const required = isRequest && schema.required?.includes(name) ? ", required" : "";
    const row = [html`<code>${path}</code>`, typeOf(field) + required, field.description ?? ""];
    return inner ? [...(inner === field ? [] : [row]), ...rowsOf(inner, `${path}.`)] : [row];
  });
}

function hasFields({ properties }: Schema): boolean {
  return properties !== undefined && Object.keys(properties).length > 0;
}

function typeOf(schema: Pick<Schema, "type" | "format" | "enum" | "$ref" | "anyOf" | "items">): string {
  if (schema.enum) return schema.enum.join(", ");
  if (schema.$ref) return schema.$ref.split("/").at(-1) ?? "";
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.type === "array") return `array of ${schema.items ? typeOf(schema.items) : "anything"}`;
  const type = [schema.type ?? "anything"].flat().join(" or ");
  return schema.format ? `${type} (${schema.format})` : type;
}

function json(value: unknown): Piece {
  return html`<pre>${JSON.stringify(value, null, 2)}</pre>`;
}

type Cell = string | number | Piece;

/** On a narrow screen each row becomes a block; with many columns, the heads stand before its cells. */
function table(heads: readonly string[], rows: readonly (readonly Cell[])[]): Piece {
  return html`<table>
<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map((cells) => html`<tr>${cells.map((cell, at) => html`<td${label(heads, at)}>${cell}</td>`)}</tr>`)}</tbody>
</table>`;
}

function label(heads: readonly string[], at: number): Piece | string {
  return heads.length > 3 && at > 0 ? html` data-label="${heads[at] ?? ""}"` : "";
}

/** The style sheet of the reference: contents at the side if there is room, otherwise above the text. */
export const style = `
:root { color-scheme: light dark; --ground: #f5f5f2; --sheet: #fff; --line: #e4e3dd; --ink: #1d1f23; --quiet: #63666d; --accent: #4456c7; --code: #f0f0ec; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #121316; --sheet: #1b1d21; --line: #2c2f35; --ink: #ececea; --quiet: #9da1a9; --accent: #9aa8ff; --code: #15171a; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 16px; }
body { margin: 0 auto; max-width: 1180px; display: grid; grid-template-columns: 220px minmax(0, 1fr); background: var(--ground); color: var(--ink); font: 15px/1.55 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; -webkit-text-size-adjust: 100%; }
nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; padding: 40px 0 24px 24px; font-size: 14px; }
nav ul { list-style: none; margin: 0; padding: 0; display: grid; gap: 7px; }
main { padding: 32px 24px 96px; min-width: 0; }
h1 { font-size: 28px; line-height: 1.2; letter-spacing: -.02em; margin: 0 0 10px; }
h2 { font-size: 20px; letter-spacing: -.01em; margin: 48px 0 10px; overflow-wrap: anywhere; }
h2 code { font-size: 17px; }
h3 { font-size: 14px; margin: 22px 0 8px; color: var(--quiet); font-weight: 600; }
p { margin: 0 0 12px; max-width: 72ch; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code, pre { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
p code { overflow-wrap: anywhere; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; overflow-x: auto; margin: 0 0 14px; }
table { border-collapse: separate; border-spacing: 0; width: 100%; background: var(--sheet); border: 1px solid var(--line); border-radius: 8px; margin: 0 0 14px; }
th, td { text-align: left; vertical-align: top; padding: 7px 14px; border-top: 1px solid var(--line); }
thead th { border-top: 0; font-size: 12px; font-weight: 600; color: var(--quiet); white-space: nowrap; }
td:first-child { white-space: nowrap; width: 24%; }
td:target, tr:has(:target) { background: var(--code); }
.plain { list-style: none; margin: 0; padding: 0; }
.method { color: var(--accent); font-weight: 650; }
.lead { font-size: 16px; }
.quiet { color: var(--quiet); }
summary { cursor: pointer; color: var(--quiet); font-size: 14px; margin: 0 0 8px; }

@media (max-width: 860px) {
  body { display: block; }
  nav { position: static; max-height: none; padding: 20px 16px 0; }
  nav ul { display: flex; flex-wrap: wrap; gap: 6px 16px; }
  main { padding: 24px 16px 72px; }
}
@media (max-width: 640px) {
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { padding: 10px 12px; border-top: 1px solid var(--line); }
  tbody tr:first-child { border-top: 0; }
  td, td:first-child { width: auto; border: 0; padding: 1px 0; white-space: normal; overflow-wrap: anywhere; }
  td[data-label] { display: grid; grid-template-columns: 84px minmax(0, 1fr); gap: 10px; }
  td[data-label]::before { content: attr(data-label); color: var(--quiet); font-size: 13px; }
  td:first-child code { font-weight: 650; }
}
`;
