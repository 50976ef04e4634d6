import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { jsonSchemaOf } from "../../../src/documents/documents.js";

const schema = z.fromJSONSchema(jsonSchemaOf("manifest") as Parameters<typeof z.fromJSONSchema>[0]);
const example = (name: string) => readFileSync(new URL(`../../../jobs/${name}`, import.meta.url), "utf8");

test.each(["demo.json", "nightly.example.json", "product-shots.yaml", "voice-overs.yaml"])(
  "the schema that editors get takes %s",
  (name) => {
    expect(schema.safeParse(parse(example(name))).error).toBeUndefined();
  },
);

test.each<[string, unknown]>([
  ["an unknown field", { rows: [], row: [] }],
  ["a matrix without lists", { rows: [], matrix: { lang: "en" } }],
  ["lists below a name other than params", { rows: [], zip: { look: { style: ["oil"] } } }],
  ["a step without a name", { steps: [{ model: "m" }] }],
  ["params that are no object", [{ params: "x" }]],
])("it refuses %s", (_name, manifest) => {
  expect(schema.safeParse(manifest).success).toBe(false);
});

test("it says what every field is for", () => {
  const text = JSON.stringify(jsonSchemaOf("manifest"));
  for (const field of ["vars", "matrix", "zip", "steps", "repeat", "output", "$schema"]) {
    expect(text).toMatch(new RegExp(`"${field.replace("$", "\\$")}":\\{[^}]*`));
  }
  expect(text).toContain("each row is made with every combination of these values");
});
