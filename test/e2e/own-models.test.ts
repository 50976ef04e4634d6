import { expect, test } from "vitest";
import { OpenAiUpstream } from "../upstreams/openai.js";
import { newPlace, run } from "./command.js";

const template = `<svg xmlns="http://www.w3.org/2000/svg" width="{{ width }}" height="{{ height }}"><text y="20">{{ prompt }}</text></svg>`;

function banners() {
  const at = newPlace();
  at.write("banner.svg", template);
  at.write(
    "models.yaml",
    `models:
  - key: banner
    provider: { kind: template }
    category: image
    credits: { base: 1, by: { size: { 120x90: 3 } } }
    params: { size: [64x64, 120x90] }
    template: banner.svg
`,
  );
  at.write("bulkgen.config.yaml", "models: models.yaml\n");
  at.write("set.csv", "id,prompt,model,params.size\na,A <b> & c,banner,64x64\nb,Boats,banner,120x90\n");
  return at;
}

test("a sheet runs on the models of a file: agreed to, priced by option, archived, never made twice", async () => {
  const at = banners();
  const plan = await run(at, ["plan", "set.csv"]);
  expect(plan.stderr).toBe("");
  expect(plan.stdout).toContain("credits   4 needed");
  const ended = await run(at, ["run", "set.csv", "--yes", "--json"]);
  expect(ended.code, ended.stderr).toBe(0);
  expect(JSON.parse(ended.stdout)).toMatchObject({ counts: { archived: 2 } });
  const again = await run(at, ["run", "set.csv", "--yes"]);
  expect(again.stdout).toContain("2 of 2 items, all of them before, not paid again");
  expect(again.stdout).toContain("credits   0 spent");
});

test("what a models file does with keys and programs needs this user's agreement, once", async () => {
  const upstream = await new OpenAiUpstream().start();
  const at = newPlace();
  const env = { OPENAI_API_KEY: upstream.key };
  at.write(
    "models.yaml",
    `providers: { vendor: { kind: openai, base_url: "${upstream.url}/v1" } }
models:
  - { key: hero, provider: vendor, category: image, credits: 4, request: { model: gpt-image-2 } }
`,
  );
  at.write("set.csv", "id,prompt,model\na,A kite,hero\n");
  const refused = await run(at, ["run", "set.csv", "--models", "models.yaml", "--yes"], { env });
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain(`openai at ${upstream.url}/v1 with the key in $OPENAI_API_KEY`);
  expect(refused.stderr).toMatch(/`bulkgen trust --models \S*models.yaml`/);
  expect(upstream.asked).toEqual([]);
  expect((await run(at, ["trust", "--models", "models.yaml", "--yes"], { env })).code).toBe(0);
  const ended = await run(at, ["run", "set.csv", "--models", "models.yaml", "--yes"], { env });
  expect(ended.code, ended.stderr).toBe(0);
  expect(upstream.times("A kite")).toBe(1);
  expect(ended.stdout + ended.stderr).not.toContain(upstream.key);
  await upstream.stop();
});

test("every mistake of a models file is said at once, with its place, and nothing is sent", async () => {
  const at = newPlace();
  at.write("set.csv", "id,prompt,model\na,A kite,hero\n");
  at.write(
    "models.yaml",
    `providers:
  vendor: { kind: openia, api_key: sk-123 }
  other: { kind: openai, api_key: sk-123, headers: { Authorization: Bearer sk-123 } }
models:
  - { key: hero, provider: vendor, category: image }
  - { key: hero, provider: othre, category: picture, credits: -1 }
  - { key: two, provider: other, category: image, request: { model: x }, credits: { base: 1, by: { size: { big: 2 } } } }
`,
  );
  const { code, stderr } = await run(at, ["run", "set.csv", "--models", "models.yaml", "--yes"]);
  expect(code).toBe(2);
  for (const line of [
    "line 2, column 19: providers.vendor.kind: expected one of",
    "did you mean openai?",
    "line 3, column 26: providers.other.api_key: there is no such field; a key is never written here",
    "providers.other.headers.Authorization: expected {{ key }} instead of a key",
    "line 6, column 28: models[2].provider: expected one of providers (vendor, other)",
    "did you mean other?",
    'models[2].category: expected one of image, video, audio, got "picture"',
    "models[2].credits: ",
    "models[2].key: expected a key that no other model has",
    "models[3].credits.by.size: there is no parameter size",
  ])
    expect(stderr).toContain(line);
  expect(stderr).not.toContain("sk-123");
});

test("a full queue holds up its own model alone, and is asked again when it says", async () => {
  const upstream = await new OpenAiUpstream().start();
  const at = newPlace();
  const env = { OPENAI_API_KEY: upstream.key };
  at.write("banner.svg", template);
  at.write(
    "models.yaml",
    `providers: { vendor: { kind: openai, base_url: "${upstream.url}/v1", concurrency: 1, waiting: 1 } }
models:
  - { key: hero, provider: vendor, category: image, credits: 4, request: { model: gpt-image-2 } }
  - { key: banner, provider: { kind: template }, category: image, template: banner.svg, params: { size: [64x64] } }
`,
  );
  const rows = ["a", "b", "c", "d", "e", "f"].map((id) => `${id},Kite ${id},hero\n`);
  at.write("set.csv", `id,prompt,model\n${rows.join("")}g,Boats,banner\n`);
  await run(at, ["trust", "--models", "models.yaml", "--yes"], { env });
  const ended = await run(at, ["run", "set.csv", "--models", "models.yaml", "--yes", "--json"], { env });
  expect(ended.code, ended.stderr).toBe(0);
  const { counts, requests } = JSON.parse(ended.stdout);
  expect(counts).toMatchObject({ archived: 7 });
  expect(requests).toBeLessThan(7 * 5);
  for (const id of ["a", "b", "c", "d", "e", "f"]) expect(upstream.times(`Kite ${id}`)).toBe(1);
  await upstream.stop();
});
