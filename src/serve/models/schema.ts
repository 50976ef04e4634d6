import { z } from "zod";
import type { ProviderKind } from "../../providers/kind.js";
import { fileFields, modelFields, providerFields } from "./shape.js";

/**
 * The JSON Schema (draft 2020-12) of a models file, for editors. Which fields a model may have depends on the kind of its
 * provider, which stands elsewhere in the file: the schema allows those of all kinds, and reading the file tells the rest.
 */
export function modelsFileSchema(kinds: readonly ProviderKind[]): object {
  const provider = z.discriminatedUnion("kind", providersOf(kinds));
  const ofKinds = Object.assign({}, ...kinds.map(({ model }) => model)) as z.ZodRawShape;
  const optional = Object.entries(ofKinds).map(([name, field]) => [name, z.optional(field)]);
  const model = z.strictObject({
    ...modelFields,
    provider: z.union([z.string(), provider]),
    ...Object.fromEntries(optional),
  });
  const file = z.strictObject({
    ...fileFields,
    providers: z.record(z.string(), provider).optional(),
    models: z.array(model).min(1),
  });
  const { $schema, ...rest } = z.toJSONSchema(file, { io: "input", unrepresentable: "any" });
  return { $schema, title: "bulkgen models file", ...rest };
}

type OneOfKind = z.ZodObject<{ kind: z.ZodLiteral<string> }>;

function providersOf(kinds: readonly ProviderKind[]): [OneOfKind, ...OneOfKind[]] {
  const all = kinds.map(({ name, describe, provider }) =>
    z.strictObject({ kind: z.literal(name), ...providerFields, ...provider }).describe(describe),
  );
  return all as unknown as [OneOfKind, ...OneOfKind[]];
}
