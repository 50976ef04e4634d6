import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { kinds } from "../../src/serve/kinds.js";
import { modelsFileSchema } from "../../src/serve/models/schema.js";
import { newPlace, run } from "../e2e/command.js";

const examples = fileURLToPath(new URL("../../examples/models/", import.meta.url));
const isValid = new Ajv2020({ strict: false }).compile(modelsFileSchema(kinds));

test.each(readdirSync(examples))("the schema for editors takes examples/models/%s", (name) => {
  const written = parse(readFileSync(`${examples}${name}/models.yaml`, "utf8"));
  expect(isValid(written), JSON.stringify(isValid.errors)).toBe(true);
});

const model = { key: "a", provider: "v", category: "image" };
test.each([
  ["a kind that does not exist", { providers: { v: { kind: "opanai" } }, models: [model] }],
  [
    "a field of another kind of provider",
    { providers: { v: { kind: "openai", browser: "x" } }, models: [model] },
  ],
  ["a misspelled field of a model", { models: [{ ...model, categorie: "image" }] }],
  ["no models", { models: [] }],
  ["a price that is a text", { models: [{ ...model, credits: "4" }] }],
])("it refuses %s", (_, written) => {
  expect(isValid(written)).toBe(false);
});

test("`bulkgen schema models-file` prints it, and the list of schemas names it", async () => {
  const at = newPlace();
  const { stdout } = await run(at, ["schema", "models-file"]);
  expect(JSON.parse(stdout)).toEqual(modelsFileSchema(kinds));
  expect((await run(at, ["schema"])).stdout).toContain("models-file");
  const misspelled = await run(at, ["schema", "model-file"]);
  expect(misspelled).toMatchObject({ code: 2, stderr: expect.stringContaining("Did you mean models-file?") });
});
