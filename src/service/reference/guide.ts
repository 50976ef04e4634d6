import prettyMilliseconds from "pretty-ms";
import { endpoints } from "../../api/endpoints.js";
import { sandboxKey } from "../../api/key.js";
import { planLimits } from "../../api/plans.js";
import type { ServiceModel } from "../models/model.js";
import { examples } from "./examples.js";
import { type Operation, operations, refusalsOf, sentence } from "./operations.js";

/** The parts of the OpenAPI document that are read by people, in Markdown: as text, and on the page at /docs. */

export interface Reference {
  models: readonly ServiceModel[];
  /** How long a signed output URL is good, in milliseconds. */
  urlMs: number;
}

/** What the document says before its operations. `origin` is the address under which the service was asked for it. */
export function introduction(origin: string): string {
  return `This is the sandbox: the whole service on this machine, at no cost. What it makes are posters, clips and tunes that stand for a generation; they do not show what the prompt says.

## Your first request

Paste this into a terminal. The answer has a \`task_id\`:

${firstRequest(origin)}

A second later, put it in place of \`TASK_ID\` to get the address of the picture:

${shell(`curl "$BULKGEN_BASE_URL${endpoints.task.path.replace(":taskId", "TASK_ID")}" \\
  -H "Authorization: Bearer $BULKGEN_API_KEY"`)}

## Authentication

Every request carries a key, as \`Authorization: Bearer KEY\` or as \`X-API-Key: KEY\`. When both are sent, Authorization counts. A key is \`svc_\` and 32 letters or digits.

This sandbox always takes the public key \`${sandboxKey}\`. Make keys of your own in the dashboard, whose link \`bulkgen sandbox\` prints, or with \`bulkgen sandbox keys create NAME\`.

## Limits

${limits()}

Every request with a good key counts, polls included, for all keys of an account together. Beyond a limit the answer is 429 \`RATE_LIMITED\`, with the seconds to wait in \`Retry-After\`.

## Errors

Every error has this body:

\`\`\`json
${JSON.stringify(examples(origin).Error, null, 2)}
\`\`\`

${errors()}

Errors are checked in this order: the path (404 \`NOT_FOUND\`), its method (405 \`METHOD_NOT_ALLOWED\`), no key, the key's form, an unknown or revoked key, the subscription, the limits, and then the request itself. A refused request costs no credits.

## Rehearse what goes wrong

A prompt with \`[[moderation]]\` or \`[[provider-error]]\` makes a task that fails in that way. Its credits come back.

Credits, plan and subscription are changed while the sandbox runs:

${shell(`bulkgen sandbox account --credits 3 --plan Starter
bulkgen sandbox account --subscription past_due
bulkgen sandbox account --subscription active`)}

Generating needs an active subscription; one that is canceled is good until its period ends. When it is not good, GET me still shows it, with its status. A service may show null instead: the switch \`subscription.shownWhenNotGood\` rehearses that. See \`bulkgen sandbox --help\` for \`--switches\` and \`--faults\`.`;
}

/** What an operation does, a command that asks for it, and what is to be said of it alone. */
export function operationGuide(operation: Operation, origin: string, reference: Reference): string {
  const { endpoint, description } = operation;
  const parts = [description, commandOf(operation, origin)];
  if (endpoint === "task") parts.push(polling(reference.urlMs));
  if (endpoint === "models") parts.push(catalogue(reference.models));
  return parts.join("\n\n");
}

function firstRequest(origin: string): string {
  return shell(`export BULKGEN_BASE_URL=${origin}
export BULKGEN_API_KEY=${sandboxKey}
curl "$BULKGEN_BASE_URL${endpoints.generate.path}" \\
  -H "Authorization: Bearer $BULKGEN_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify(examples(origin).GenerateRequest)}'`);
}

function commandOf({ endpoint, body }: Operation, origin: string): string {
  const address = `${origin}${endpoints[endpoint].path.replace(":taskId", "TASK_ID")}`;
  const words = [`curl ${address}`, `-H "Authorization: Bearer ${sandboxKey}"`];
  if (body)
    words.push('-H "Content-Type: application/json"', `-d '${JSON.stringify(examples(origin)[body])}'`);
  return shell(words.join(" \\\n  "));
}

function polling(urlMs: number): string {
  return `**Polling and downloading.** Ask for a task 2 seconds after it was created, then at intervals that grow to 10 seconds, and stop at \`completed\` or \`failed\`. Give up after 10 minutes. Each poll counts against the plan's limits.

Output addresses are signed and are good for ${prettyMilliseconds(urlMs, { verbose: true })}. They need no key. When one has expired, GET the task again for a new one. Download what you want to keep.`;
}

function catalogue(models: readonly ServiceModel[]): string {
  const rows = models.map(({ key, category, inputType, credits, parameters }) => {
    const lines = parameters.map(({ key, options, default: preset }) => {
      const values = options.map(({ value }) =>
        value === preset ? `**${literal(value)}**` : literal(value),
      );
      return `${literal(key)}: ${values.length > 0 ? values.join(", ") : "any value"}`;
    });
    return [literal(key), category, inputType, credits, lines.join("<br>") || "none"];
  });
  return `**The models of this service.** The default of each parameter is in bold. All values are strings.

${table(["Model", "Makes", "Needs", "Credits", "Parameters"], rows)}`;
}

function limits(): string {
  const rows = Object.entries(planLimits).map(([plan, { perMinute, perDay }]) => [
    plan,
    perMinute ?? "unlimited",
    perDay ?? "unlimited",
  ]);
  return table(["Plan", "Requests a minute", "Requests a day"], rows);
}

/** Every refusal once, with the endpoints that can answer it. */
function errors(): string {
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
    literal(code),
    status,
    of.length === operations.length ? "all" : of.join(", "),
    [...conditions].map(sentence).join(" "),
  ]);
  return table(["Code", "Status", "Endpoints", "When"], cells);
}

function shell(commands: string): string {
  return `\`\`\`sh\n${commands}\n\`\`\``;
}

function table(heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lines = [heads, heads.map(() => "---"), ...rows];
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** A name as code. A model file may bring any text: what Markdown could take for something else is escaped instead. */
function literal(text: string): string {
  if (/^[\w .:/+-]+$/.test(text)) return `\`${text}\``;
  return text.replace(/\s+/g, " ").replace(/[!-/:-@[-`{-~]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
