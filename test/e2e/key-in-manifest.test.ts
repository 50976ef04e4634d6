import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { newPlace, type Place, run } from "./command.js";
import { testKey } from "./leaked-key.js";
import { type ScriptedService, startService } from "./service.js";

/** P21: a key that a person pastes into a manifest is sent nowhere, and is in no file but their own. */
let at: Place;
let service: ScriptedService;

/** The end of every place searches its files, so the person's own stay elsewhere. */
let theirs: string;
const key = testKey;

beforeEach(async () => {
  at = newPlace();
  theirs = join(at.root, "home", "manifest");
  mkdirSync(theirs);
  service = await startService();
});

/** Files of the person's own, and the manifest among them. `.env` is where a key may be. */
const manifests: [string, string, string, Record<string, string>][] = [
  ["a prompt", "set.csv", "column prompt", { "set.csv": `id,model,prompt\na,plain-image,a cup ${key}\n` }],
  ["an id", "set.csv", "column id", { "set.csv": `id,model,prompt\n${key},plain-image,a cup\n` }],
  [
    "a param",
    "set.csv",
    "column params.style",
    { "set.csv": `id,model,prompt,params.style\na,plain-image,cup,${key}\n` },
  ],
  [
    "a column that nothing uses",
    "set.csv",
    "column note",
    { "set.csv": `id,model,prompt,note\na,plain-image,cup,${key}\n` },
  ],
  [
    "an input",
    "set.csv",
    "column image_url",
    { "set.csv": `id,model,prompt,image_url\na,plain-image,cup,https://x.example/?k=${key}\n` },
  ],
  ["a header", "set.csv", "set.csv", { "set.csv": `id,model,prompt,${key}\na,plain-image,cup,x\n` }],
  [
    "a cell with another problem",
    "set.csv",
    "column repeat",
    { "set.csv": `id,model,prompt,repeat\na,plain-image,cup,${key}\n` },
  ],
  [
    "a default",
    "job.yaml",
    "column prompt",
    { "job.yaml": `defaults: { model: plain-image, prompt: ${key} }\nrows: [{ id: a }]\n` },
  ],
  [
    "a variable of a template",
    "job.yaml",
    "column k",
    { "job.yaml": `vars: { k: ${key} }\nrows: [{ id: a, model: plain-image, prompt: "a {{ k }}" }]\n` },
  ],
  [
    "two halves that a template joins",
    "job.yaml",
    "column prompt",
    {
      "job.yaml": `vars: { k: ${key.slice(0, 20)} }\nrows: [{ id: a, model: plain-image, prompt: "a {{ k }}${key.slice(20)}" }]\n`,
    },
  ],
  [
    "a combination",
    "job.yaml",
    "column lang",
    {
      "job.yaml": `matrix: { lang: [de, ${key}] }\nrows: [{ id: a, model: plain-image, prompt: "a {{ lang }}" }]\n`,
    },
  ],
  [
    "a step",
    "job.yaml",
    "column prompt",
    { "job.yaml": `rows: [{ id: a, model: plain-image }]\nsteps: [{ name: one, prompt: ${key} }]\n` },
  ],
  [
    "the job's name",
    "job.yaml",
    "job.yaml",
    { "job.yaml": `name: ${key}\nrows: [{ id: a, model: plain-image, prompt: cup }]\n` },
  ],
  [
    "a prompt file",
    "set.csv",
    "column prompt",
    { "set.csv": "id,model,prompt\na,plain-image,@.env.txt\n", ".env.txt": `a cup ${key}\n` },
  ],
];

test.each(manifests)("%s", async (_, manifest, place, files) => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(theirs, name), text);
  const path = join(theirs, manifest);
  for (const words of [
    ["run", path, "--yes"],
    ["run", path, "--yes", "--skip-invalid"],
    ["plan", path, "--json"],
    ["plan", path, "-o", "plan.json"],
  ]) {
    const { code, stdout, stderr } = await run(at, words, service);
    expect([words, code]).toEqual([words, 2]);
    expect(stdout + stderr).toContain("has an API key in it, which would be sent to the service");
    expect(stdout + stderr).toContain(place);
  }
  expect(service.count("POST generate")).toBe(0);
  // What is left is searched for the key at the end.
  for (const name of Object.keys(files)) writeFileSync(join(theirs, name), "");
});

test("the other rows are made with --skip-invalid, and problems.csv does not have the key", async () => {
  writeFileSync(join(theirs, "set.csv"), `id,model,prompt\na,plain-image,a cup\nb,plain-image,${key}\n`);
  const { code, stderr } = await run(
    at,
    ["run", join(theirs, "set.csv"), "--yes", "--skip-invalid", "--workspace", at.folder],
    service,
  );
  expect(code, stderr).toBe(0);
  expect(at.read("outputs/set/problems.csv")).toContain("[API key]");
  writeFileSync(join(theirs, "set.csv"), "");
});

test.each([
  ["--prompt", ["run", "set.csv", "--yes", "--prompt", key]],
  ["--param", ["run", "set.csv", "--yes", "--param", `style=${key}`]],
  ["--job", ["run", "set.csv", "--yes", "--job", key]],
  ["--prompt", ["schedule", "add", "night", "set.csv", "--cron", "0 3 * * *", "--prompt", key]],
  ["a word of this command", ["find", key]],
])("a flag: %s", async (where, words) => {
  at.write("set.csv", "id,model\na,plain-image\n");
  const { code, stdout, stderr } = await run(at, words, service);
  expect([code, stderr]).toEqual([2, expect.stringContaining(`${where} has an API key in it.`)]);
  expect(stdout).toBe("");
  expect(service.asked).toEqual([]);
});

test("a setting", async () => {
  at.write("set.csv", "id,model\na,plain-image\n");
  const env = { ...service.env, BULKGEN_PROMPT: key };
  const { code, stderr } = await run(at, ["run", "set.csv", "--yes"], { env });
  expect([code, stderr]).toEqual([2, expect.stringContaining("a default has an API key in it")]);
  expect(service.count("POST generate")).toBe(0);
});
