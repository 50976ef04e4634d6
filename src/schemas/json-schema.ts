import { z } from "zod";
import { type DocumentDefinition, type DocumentName, documents } from "./documents.js";

/** The JSON Schema (draft 2020-12) of a document. It allows no other keys than those that this version writes. */
export function jsonSchemaOf(name: DocumentName): object {
  const { what, schema }: DocumentDefinition = documents[name];
  const { $schema, ...rest } = z.toJSONSchema(schema, { override: withoutLimits });
  return { $schema, title: `bulkgen ${name}`, description: what, ...rest };
}

/** That an integer is one that JavaScript can hold says nothing about it. */
function withoutLimits({ jsonSchema }: { jsonSchema: { minimum?: number; maximum?: number } }): void {
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
}
