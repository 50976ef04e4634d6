import { z } from "zod";
import { inputTypes } from "../../api/inputs.js";
import { plans, subscriptionStatuses } from "../../api/plans.js";
import * as records from "../../api/records.js";
import { fieldNotes } from "./field-notes.js";

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

/** What the values of a field are limited to here, though a client should bear others. */
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
  const note = fieldNotes[path];
  if (note) result.description = note;
  const field = path.split(".").at(-1) ?? "";
  const values = field === "category" ? records.categories : known[path];
  if (values) result.enum = values;
  if (field.endsWith("_at") || field === "current_period_end") result.format = "date-time";
  if (field === "task_id") result.format = "uuid";
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
