import { expect, test, vi } from "vitest";
import { OpenAiUpstream } from "../upstreams/openai.js";
import { newPlace, run, started } from "./command.js";

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

test("a run in the workspace of `bulkgen serve` uses that service, with a key of its own", async () => {
  const at = banners();
  const serving = started(at, ["serve"], { serves: true });
  await serving.prints(/ {2}page: /);
  const ended = await run(at, ["run", "set.csv", "--yes", "--json"]);
  expect(ended.code, ended.stderr).toBe(0);
  expect(JSON.parse(ended.stdout)).toMatchObject({ counts: { archived: 2 } });
  const keys = await run(at, ["serve", "keys", "list", "--json"]);
  expect(JSON.parse(keys.stdout)).toMatchObject([
    { name: "first", credits_used: 0 },
    { name: "this workspace", credits_used: 4 },
  ]);
  serving.interrupt();
  expect((await serving.ended).code).toBe(0);
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

test("local files are given to a service that takes them, and its outputs are inputs of other rows", async () => {
  const at = newPlace();
  const { pixel } = await import("../upstreams/comfyui.js");
  at.write("photos/cup.png", pixel);
  at.write(
    "models.yaml",
    `models:
  - { key: copy, provider: { kind: command }, category: image, input: image, command: [cp, "{{ image }}", "{{ out }}.png"] }
`,
  );
  at.write("set.csv", "id,model,image_url\na,copy,photos/cup.png\nb,copy,@a\n");
  await run(at, ["trust", "--models", "models.yaml", "--yes"]);
  const ended = await run(at, ["run", "set.csv", "--models", "models.yaml", "--yes", "--json"]);
  expect(ended.code, ended.stderr).toBe(0);
  expect(JSON.parse(ended.stdout).counts).toMatchObject({ archived: 2 });
});

test("cancel stops at the service what has not begun, and its credits come back", async () => {
  const at = newPlace();
  at.write(
    "models.yaml",
    `models:
  - { key: slow, provider: { kind: command }, category: image, credits: 2, command: [node, "{{ folder }}/wait.mjs", "{{ folder }}/go"], stdin: "{{ prompt }}" }
`,
  );
  at.write(
    "wait.mjs",
    "import { existsSync } from 'node:fs';\nconst look = setInterval(() => existsSync(process.argv[2]) && clearInterval(look), 20);\n",
  );
  at.write("set.csv", "id,model,prompt\na,slow,A\nb,slow,B\nc,slow,C\n");
  await run(at, ["trust", "--models", "models.yaml", "--yes"]);
  const running = started(at, ["run", "set.csv", "--models", "models.yaml", "--yes", "--json"]);
  const jobs = () => run(at, ["serve", "jobs", "--json", "--state", ".bulkgen/service"]);
  await vi.waitUntil(
    async () => {
      const { code, stdout } = await jobs();
      return (
        code === 0 &&
        JSON.parse(stdout).filter(({ stage }: { stage: string }) => stage === "queued").length === 2
      );
    },
    { timeout: 60_000 },
  );
  expect((await run(at, ["cancel"])).code).toBe(0);
  await vi.waitUntil(async () => JSON.parse((await jobs()).stdout).length === 1, { timeout: 60_000 });
  at.write("go", "");
  const { stdout } = await running.ended;
  // The one that had begun made nothing, which is the provider's failure: it would be tried again, but for the cancellation.
  expect(JSON.parse(stdout)).toMatchObject({ counts: { failed: 2, archived: 0, processing: 0 } });
  const { stdout: status } = await run(at, ["status", "--json"]);
  expect(status.match(/It was cancelled\./g)).toHaveLength(2);
});

test("a rehearsal offers the models of the file, with their prices and params, and starts nothing", async () => {
  const at = newPlace();
  at.write(
    "models.yaml",
    `models:
  - key: draw
    provider: { kind: command }
    category: image
    credits: { base: 2, by: { size: { large: 5 } } }
    params: { size: [small, large] }
    command: [touch, "{{ folder }}/started", "{{ size }}", "--", "{{ prompt }}"]
`,
  );
  at.write("bulkgen.config.yaml", "models: models.yaml\n");
  at.write("set.csv", "id,model,prompt,params.size\na,draw,A,small\nb,draw,B,large\n");
  const ended = await run(at, ["run", "set.csv", "--sandbox", "--yes"]);
  expect(ended.code, ended.stderr).toBe(0);
  expect(ended.stdout).toMatch(/credits +7 spent/);
  expect(at.files().filter((name) => name.includes("started"))).toEqual([]);
});

test("what a model costs is what its file says now, whatever it or a model of that name in another file has cost", async () => {
  const at = banners();
  const priced = (credits: number) =>
    at.write(
      "models.yaml",
      `models: [{ key: banner, provider: { kind: template }, category: image, credits: ${credits}, params: { size: [64x64, 120x90] }, template: banner.svg }]\n`,
    );
  priced(30);
  expect((await run(at, ["run", "set.csv", "--yes"])).code).toBe(0);
  at.write("more.csv", "id,prompt,model\nc,Cups,banner\n");
  priced(5);
  expect((await run(at, ["plan", "more.csv"])).stdout).toContain("credits   5 needed");
  priced(0);
  expect((await run(at, ["run", "more.csv"])).code).toBe(0);
});

test("a command that lacks the models of its run or plan says which flag names them", async () => {
  const at = banners();
  at.write("bulkgen.config.yaml", "");
  const models = ["--models", "models.yaml"];
  const plan = await run(at, ["plan", "set.csv", "-o", "p.json", ...models]);
  expect(plan.stdout).toContain("A plan does not keep --models: give it again");
  const capped = await run(at, ["run", "set.csv", "--yes", "--max-credits", "1", ...models]);
  expect(capped.code).toBe(6);
  const env = { BULKGEN_API_KEY: "", BULKGEN_BASE_URL: "" };
  const alone = await run(at, ["resume", "--yes", "--max-credits", "4"], { env });
  expect(alone.stderr).toContain("Or add --models FILE for models of your own");
  expect((await run(at, ["resume", "--yes", "--max-credits", "4", ...models])).code).toBe(0);
});

test("trust --forget forgets the models file too, wherever it lies", async () => {
  const at = newPlace();
  at.write(
    "sub/models.yaml",
    'models: [{ key: x, provider: { kind: command }, category: image, credits: 1, command: [draw, --, "{{ prompt }}"] }]\n',
  );
  at.write("bulkgen.config.yaml", "models: sub/models.yaml\n");
  expect((await run(at, ["trust", "--yes"])).code).toBe(0);
  expect((await run(at, ["models"])).code).toBe(0);
  expect((await run(at, ["trust", "--forget"])).code).toBe(0);
  expect((await run(at, ["models"])).code).toBe(2);
  expect((await run(at, ["trust", "--list"])).stdout).toContain("nothing has been agreed to");
});
