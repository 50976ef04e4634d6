import fc from "fast-check";
import type { Schema } from "../../../src/service/reference/schemas.js";
import { anyCharacter } from "../../any-character.js";

/**
 * Values for a JSON Schema: mostly such as it allows, here and there one that it does not, because a service is
 * asked both. `hints` are likely values of a field by its name, such as a known model.
 */
export function fromSchema(
  schema: Schema,
  hints: Readonly<Record<string, fc.Arbitrary<unknown>>>,
): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 12, arbitrary: allowed(schema, hints) },
    { weight: 1, arbitrary: fc.jsonValue() },
  );
}

function allowed(
  schema: Schema,
  hints: Readonly<Record<string, fc.Arbitrary<unknown>>>,
): fc.Arbitrary<unknown> {
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((option) => allowed(option, hints)));
  if (schema.enum) return fc.constantFrom(...schema.enum);
  switch ([schema.type].flat()[0]) {
    case "object":
      return objectOf(schema, hints);
    case "array":
      return fc.array(fromSchema(schema.items ?? {}, hints), { maxLength: 4 });
    case "number":
    case "integer":
      return fc.oneof(fc.integer(), fc.double());
    case "boolean":
      return fc.boolean();
    case "string":
      return text;
    default:
      return fc.jsonValue();
  }
}

/** Texts of every alphabet, and such as have broken services before. */
export const text = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: "grapheme", maxLength: 60 }) },
  { weight: 2, arbitrary: fc.string({ unit: anyCharacter, maxLength: 60 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "",
      " ",
      "\u0000",
      "__proto__",
      "constructor",
      "toString",
      "null",
      "NaN",
      "-1",
      "1e999",
      "../../etc/passwd",
      "%00",
      "%ff",
      "%2e%2e%2f",
      "' or 1=1 --",
      "<script>",
      "\ud800",
      "{{7*7}}",
      "a".repeat(5_000),
    ),
  },
);

function objectOf(
  schema: Schema,
  hints: Readonly<Record<string, fc.Arbitrary<unknown>>>,
): fc.Arbitrary<unknown> {
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const value = fromSchema(field, hints);
    const hint = hints[name];
    return [name, hint ? fc.oneof({ weight: 3, arbitrary: hint }, { weight: 1, arbitrary: value }) : value];
  });
  const known = fc.record(Object.fromEntries(fields), { requiredKeys: [] });
  const strange =
    typeof schema.additionalProperties === "object" && schema.additionalProperties.type
      ? fc.dictionary(text, fromSchema(schema.additionalProperties, hints), { maxKeys: 3 })
      : fc.dictionary(text, fc.jsonValue(), { maxKeys: 2 });
  return fc
    .tuple(known, fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: strange }))
    .map(([left, right]) => Object.assign({}, right, left));
}
