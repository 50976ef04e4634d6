import { z } from "zod";
import { inputTypes } from "../../api/inputs.js";
import { plans, subscriptionStatuses } from "../../api/plans.js";
import * as records from "../../api/records.js";

/** What each field of the service's records means. */
const fieldNotes: Readonly<Record<string, string>> = {
  GenerateRequest: "A generation to make.",
  "GenerateRequest.model": "A model_key of the model list.",
  "GenerateRequest.prompt": "Text; required when the model's input_type is text or text+image.",
  "GenerateRequest.params": "The model's parameters by key; what is left out has its default.",
  "GenerateRequest.image_url": "Required when the input_type is image or text+image.",
  "GenerateRequest.video_url": "Required when the input_type is video.",
  "GenerateRequest.audio_url":
    "Sound to go with the generation. Only reel-perform uses one; its video lasts as long as the sound, whatever duration says.",
  Creation: "What POST generate answers.",
  "Creation.task_id": "To GET the task by.",
  "Creation.status": "A new task is never finished yet.",
  "Creation.external_task_id": "The identifier of the upstream provider.",
  "Creation.credits_consumed": "Credits that this generation costs.",
  "Creation.credits_remaining": "The balance after it.",
  Task: "What GET task answers, in every status.",
  "Task.status": "completed and failed are final.",
  "Task.input": "Prompt, params and inputs as keys of one object.",
  "Task.output_urls": "Signed addresses of the outputs when completed, otherwise null. They expire.",
  "Task.error": "A message when failed, otherwise null.",
  "Task.credits_consumed": "Credits; 0 when failed.",
  "Task.completed_at": "Null while processing.",
  ModelList: "What GET models answers.",
  "ModelList.categories": "Keys of the listed models by category.",
  "ModelList.total": "How many models are listed.",
  Model: "One model.",
  "Model.model_key": "What a request names as its model.",
  "Model.credits_cost": "The base cost of a generation in credits.",
  "Model.input_type": "Which inputs a generation needs.",
  "Model.parameters": "What params may hold.",
  ModelParameter: "A parameter that a request may set inside params.",
  Me: "What GET me answers.",
  "Me.user.name": "The full name, or null.",
  "Me.credits.balance": "Credits that can be spent.",
  "Me.credits.used_this_key": "Credits that were spent with this key.",
  "Me.subscription": "Null when there is none.",
  "Me.subscription.cancel_at_period_end": "Whether it ends with its period.",
  "Me.api_key.requests_count": "Requests made with this key.",
  Error: "Every error has this shape.",
};

/** A JSON Schema, as far as it is read here. */
export interface Schema {
  type?: string | string[];
  description?: string;
  format?: string;
  enum?: readonly string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  additionalProperties?: Schema | boolean;
  $ref?: string;
}

const named = {
  GenerateRequest: records.generateRequest,
  Creation: records.creation,
  Task: records.task,
  ModelList: records.modelList,
  Model: records.model,
  ModelParameter: records.modelParameter,
  Me: records.me,
  Error: records.errorBody,
} as const;

export type SchemaName = keyof typeof named;

/** The values that a field has here; a client should accept others too. */
const known: Readonly<Record<string, readonly string[]>> = {
  "Creation.status": ["processing"],
  "Task.status": records.taskStatuses,
  "Model.input_type": inputTypes,
  "ModelParameter.type": ["select"],
  "Me.subscription.status": subscriptionStatuses,
  "Me.subscription.plan": plans,
  "Me.subscription.billing_interval": ["month", "year"],
};

/** The service's records as JSON Schemas that refer to one another, made from those that the client reads by. */
export function componentSchemas(): Record<SchemaName, Schema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { uri: refTo });
  const names = Object.keys(named) as SchemaName[];
  const made = names.map((name) => [
    name,
    explained(name, schemas[name] as Schema & Record<string, unknown>),
  ]);
  return Object.fromEntries(made) as Record<SchemaName, Schema>;
}

export function refTo(name: string): string {
  return `#/components/schemas/${name}`;
}

/** The schema with what zod does not know about each field: what it means, its format and its known values. */
function explained(path: string, schema: Schema & Record<string, unknown>): Schema {
  const { $schema: _, $id: __, ...rest } = schema;
  const result: Schema = { ...rest };
  // Without it other fields are allowed just the same; with it, typed clients would let every misspelt name pass.
  if (Object.keys(schema.properties ?? {}).length > 0) delete result.additionalProperties;
  const note = fieldNotes[path];
  if (note) result.description = note;
  const field = path.split(".").at(-1) ?? "";
  const values = field === "category" ? records.categories : known[path];
  if (values) result.enum = values;
  if (field.endsWith("_at") || field === "current_period_end") result.format = "date-time";
  if (field === "task_id" || path === "Me.user.id") result.format = "uuid";
  if (field === "email") result.format = "email";
  if (field.endsWith("_url")) result.format = "uri";
  if (field === "output_urls") {
    result.anyOf = [{ type: "array", items: { type: "string", format: "uri" } }, { type: "null" }];
    return result;
  }
  // The page leaves these out of some models; here they are always there.
  if (path === "ModelParameter") result.required = Object.keys(schema.properties ?? {});
  if (schema.properties) {
    const entries = Object.entries(schema.properties) as [string, Schema & Record<string, unknown>][];
    result.properties = Object.fromEntries(
      entries.map(([name, inner]) => [name, explained(`${path}.${name}`, inner)]),
    );
  }
  if (schema.anyOf) {
    result.anyOf = schema.anyOf.map((inner) => explained(path, inner as Schema & Record<string, unknown>));
  }
  return result;
}
