import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { filesWith, newPlace, type Place, run, started } from "../e2e/command.js";
import { afterwards } from "../serve/place.js";
import { ComfyUi, pixel } from "../upstreams/comfyui.js";
import { ElevenLabsUpstream } from "../upstreams/elevenlabs.js";
import { FalUpstream } from "../upstreams/fal.js";
import { GeminiUpstream } from "../upstreams/gemini.js";
import { OpenAiUpstream } from "../upstreams/openai.js";
import { ReplicateUpstream } from "../upstreams/replicate.js";
import type { Upstream } from "../upstreams/upstream.js";

let at: Place;
beforeEach(() => {
  at = newPlace();
});

const read = (name: string) => readFileSync(join(at.folder, name), "utf8");
const modelsOf = (folder: string) => parse(read(`${folder}/models.yaml`));

interface Vendor {
  name: string;
  variable: string;
  make: () => Upstream & { key: string };
  base?: string;
  /** It has no request that tries a key and costs nothing. */
  untried?: true;
}

const vendors: readonly Vendor[] = [
  { name: "openai", variable: "OPENAI_API_KEY", make: () => new OpenAiUpstream(), base: "/v1" },
  { name: "fal", variable: "FAL_KEY", make: () => new FalUpstream(), untried: true },
  { name: "replicate", variable: "REPLICATE_API_TOKEN", make: () => new ReplicateUpstream() },
  { name: "gemini", variable: "GEMINI_API_KEY", make: () => new GeminiUpstream() },
  {
    name: "elevenlabs",
    variable: "ELEVENLABS_API_KEY",
    make: () => new ElevenLabsUpstream(),
  },
];
const [openai] = vendors as [Vendor, ...Vendor[]];

async function standIn({
  make,
  base = "",
}: Vendor): Promise<{ upstream: Upstream; key: string; address: string }> {
  const upstream = await make().start();
  afterwards(() => upstream.stop());
  return { upstream, key: upstream.key, address: upstream.url + base };
}

describe("init --provider with a vendor", () => {
  test.each(vendors)("$name: from a key in a file to the files of the first sheet", async (vendor) => {
    const { upstream, key, address } = await standIn(vendor);
    writeFileSync(join(at.folder, "key"), `${key}\n`);
    const flags = ["--provider", vendor.name, "--base-url", address, "--api-key-file", "key"];
    const made = await run(at, ["init", "set", ...flags]);
    expect(made, made.stderr).toMatchObject({ code: 0, stderr: "" });
    expect(made.stdout).toMatch(/^made {3}\.bulkgen\/\nmade {3}\.env .*\nmade {3}models\.yaml\n/);
    expect(made.stdout).toContain("\n  cd set\n  bulkgen serve check ");
    expect(made.stdout).not.toContain(key);
    expect(made.stdout.includes("the key was not tried")).toBe(vendor.untried === true);
    expect(read("set/.env")).toContain(`\n${vendor.variable}=${key}\n`);
    expect(statSync(join(at.folder, "set", ".env")).mode & 0o777).toBe(0o600);
    expect(read("set/bulkgen.config.yaml")).toBe("models: models.yaml\n");
    expect(filesWith(at.root, key)).toEqual(["here/key", "here/set/.env"]);
    expect(modelsOf("set").providers[vendor.name].base_url).toBe(address);

    const cwd = join(at.folder, "set");
    const checked = await run(at, ["serve", "check"], { cwd });
    expect(checked, checked.stdout).toMatchObject({ code: 0, stdout: expect.stringContaining("good") });
    // Nobody is asked: the user has just named what the file does. That holds if the key comes from the environment later.
    for (const env of [{}, { [vendor.variable]: key }]) {
      const planned = await run(at, ["plan", "jobs/first.csv"], { cwd, env });
      expect(planned, planned.stderr).toMatchObject({ code: 0 });
    }
    const ended = await run(at, ["run", "jobs/first.csv", "--yes"], { cwd });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(upstream.books).toHaveLength(2);
  });

  const tried = vendors.filter(({ untried }) => !untried);
  test.each(tried)("$name: a key that is refused makes nothing", async (vendor) => {
    const { address } = await standIn(vendor);
    writeFileSync(join(at.folder, "key"), "wrong-key");
    const flags = ["--provider", vendor.name, "--base-url", address, "--api-key-file", "key"];
    const refused = await run(at, ["init", "set", ...flags]);
    expect(refused).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("Nothing was created"),
    });
    expect(refused.stderr).not.toContain("wrong-key");
    expect(existsSync(join(at.folder, "set"))).toBe(false);
  });

  test("uses a key of the environment, and makes no copy of it", async () => {
    const { key, address } = await standIn(openai);
    const env = { OPENAI_API_KEY: key };
    const made = await run(at, ["init", "set", "--provider", "openai", "--base-url", address], { env });
    expect(made, made.stderr).toMatchObject({ code: 0 });
    expect(made.stdout).toContain("note   OPENAI_API_KEY of the environment is used; .env has no copy of it");
    expect(read("set/.env")).toContain("\n# OPENAI_API_KEY=\n");
    const cwd = join(at.folder, "set");
    const ended = await run(at, ["run", "jobs/first.csv", "--yes"], { cwd, env });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(filesWith(at.root, key)).toEqual([]);
  });

  test("asks for the key on a terminal, hidden; Enter leaves it for later", async () => {
    const { key, address } = await standIn(openai);
    const flags = ["--provider", "openai", "--base-url", address];
    const terminal = { keyboard: true, columns: 100 };
    const asking = started(at, ["init", "set", ...flags], terminal);
    await asking.prints(/Your key of OpenAI, from https:\/\/platform\.openai\.com/);
    asking.type(`${key}\r`);
    const ended = await asking.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(ended.stdout + ended.stderr).not.toContain(key);
    expect(read("set/.env")).toContain(`\nOPENAI_API_KEY=${key}\n`);
    const later = started(at, ["init", "later", ...flags], terminal);
    await later.prints(/Your key of OpenAI/);
    later.type("\r");
    expect(await later.ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("once .env has OPENAI_API_KEY=…"),
    });
    expect(read("later/.env")).toContain("\n# OPENAI_API_KEY=\n");
  });

  test("a server of one's own that speaks OpenAI's API needs no key", async () => {
    const made = await run(at, [
      "init",
      "set",
      "--provider",
      "openai",
      "--base-url",
      "http://127.0.0.1:1/v1",
    ]);
    expect(made, made.stderr).toMatchObject({ code: 0 });
    expect(made.stdout).toContain("write those of http://127.0.0.1:1/v1 in their place");
    const planned = await run(at, ["plan", "jobs/first.csv"], { cwd: join(at.folder, "set") });
    expect(planned, planned.stderr).toMatchObject({ code: 0 });
  });

  test("plain init offers it on a terminal", async () => {
    const asking = started(at, ["init", "set"], { keyboard: true, columns: 100 });
    await asking.prints(/Which service is this workspace for/);
    asking.type("\u001b[B\u001b[B\r");
    await asking.prints(/Which one first/);
    // The last one: template.
    asking.type("\u001b[A\r");
    const ended = await asking.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(modelsOf("set").models[0].template).toBe("banners/banner.svg");
  });

  test.each([
    ["without a terminal and a key", ["openai"], "Set OPENAI_API_KEY, or save the key in a file"],
    ["with a file of several keys", ["openai", "--api-key-file", "keys"], "expected one key alone in keys"],
    [
      "with a workflow for a vendor",
      ["openai", "--workflow", "a.json"],
      "--workflow is for --provider comfyui",
    ],
    ["with a key for what has none", ["template", "--api-key-file", "keys"], "template needs no key"],
    ["with an address for what has none", ["command", "--base-url", "http://127.0.0.1:1"], "has no address"],
    ["with a name that is unknown", ["openapi"], "expected one of openai, comfyui"],
    ["for ComfyUI without a workflow", ["comfyui"], "give it with --workflow FILE"],
    ["for a workflow that is not there", ["comfyui", "--workflow", "a.json"], "there is no file"],
    ["for the sandbox", ["openai", "--sandbox"], "cannot be used with"],
  ])("makes nothing %s", async (_, flags, message) => {
    writeFileSync(join(at.folder, "keys"), "one two");
    const ended = await run(at, ["init", "set", "--provider", ...flags]);
    expect(ended).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) });
    expect(existsSync(join(at.folder, "set"))).toBe(false);
  });

  test("overwrites nothing, agrees to nothing that was there, and says what to do by hand", async () => {
    const { key, address } = await standIn(openai);
    const command =
      "models: [{ key: a, provider: { kind: command }, category: image, command: [cp, '{{ prompt }}'] }]\n";
    at.write("models.yaml", command.replace("cp, ", "cp, --, "));
    at.write(".env", "MINE=1\n");
    at.write("bulkgen.config.yaml", "max-credits: 5\n");
    at.write("key", key);
    const flags = ["--provider", "openai", "--base-url", address, "--api-key-file", "key"];
    const made = await run(at, ["init", ...flags]);
    expect(made, made.stderr).toMatchObject({ code: 0 });
    expect([read(".env"), read("bulkgen.config.yaml")]).toEqual(["MINE=1\n", "max-credits: 5\n"]);
    expect(made.stdout).toContain("the key was not written because .env existed: add OPENAI_API_KEY=… to it");
    expect(made.stdout).toContain('bulkgen.config.yaml existed: add "models: models.yaml" to it yourself');
    expect(made.stdout).toContain("models.yaml existed, and has no model of openai unless you add it");
    const planned = await run(at, ["plan", "jobs/first.csv", "--models", "models.yaml"]);
    expect(planned).toMatchObject({ code: 2, stderr: expect.stringContaining("not agreed") });
  });
});

describe("init --provider with what is here", () => {
  test("leaves a first sheet for other models alone, and writes one of its own; said again, it makes nothing", async () => {
    await run(at, ["init", "--sandbox"]);
    const before = read("jobs/first.csv");
    const env = { BULKGEN_BASE_URL: "https://service.example" };
    const made = await run(at, ["init", "--provider", "template"], { env });
    expect(made.stdout).toContain("\n  bulkgen run jobs/template.csv ");
    expect(made.stdout).toContain("BULKGEN_BASE_URL of the environment goes before these models");
    expect(read("jobs/first.csv")).toBe(before);
    expect(await run(at, ["plan", "jobs/template.csv"])).toMatchObject({ code: 0 });
    const again = await run(at, ["init", "--provider", "template"]);
    expect(again.stdout).not.toMatch(/^(made|added)/m);
    expect(again.stdout).toContain("\n  bulkgen run jobs/template.csv ");
  });

  test.each(["command", "template"])("%s: needs no key, and its first sheet runs", async (name) => {
    const made = await run(at, ["init", "set", "--provider", name]);
    expect(made, made.stderr).toMatchObject({ code: 0, stderr: "" });
    expect(existsSync(join(at.folder, "set", ".env"))).toBe(false);
    const cwd = join(at.folder, "set");
    const ended = await run(at, ["run", "jobs/first.csv", "--yes"], { cwd });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
  });
});

const workflows = fileURLToPath(new URL("../providers/workflows/", import.meta.url));

async function comfyUi(): Promise<ComfyUi> {
  const machine = await new ComfyUi().listen();
  afterwards(() => machine.stop());
  return machine;
}

describe("init --provider comfyui", () => {
  const initWith = (file: string, address: string) =>
    run(at, ["init", "set", "--provider", "comfyui", "--workflow", workflows + file, "--base-url", address]);

  test("writes a model with its bindings, and the values that ComfyUI takes", async () => {
    const machine = await comfyUi();
    const made = await initWith("text-to-image.json", machine.address);
    expect(made, made.stderr).toMatchObject({ code: 0, stderr: "" });
    expect(made.stdout).not.toContain("note");
    expect(modelsOf("set").models).toEqual([
      expect.objectContaining({
        key: "v1-5-pruned-emaonly",
        input: "text",
        workflow: "flows/text-to-image.json",
        bind: expect.objectContaining({ prompt: "6.text", negative: "7.text", seed: "3.seed" }),
        params: expect.objectContaining({
          steps: "number",
          // As the workflow was saved, which is not the first of the list.
          checkpoint: {
            options: ["dreamshaper_8.safetensors", "v1-5-pruned-emaonly.safetensors"],
            default: "v1-5-pruned-emaonly.safetensors",
          },
        }),
      }),
    ]);
    const cwd = join(at.folder, "set");
    const ended = await run(at, ["run", "jobs/first.csv", "--yes"], { cwd });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    const [{ workflow } = { workflow: {} }] = machine.ledger;
    expect(workflow).toMatchObject({
      4: { inputs: { ckpt_name: "v1-5-pruned-emaonly.safetensors" } },
      6: { inputs: { text: expect.stringContaining("teapot") } },
    });
  });

  test("a workflow with a picture as its input has a sheet that names one beside it", async () => {
    const machine = await comfyUi();
    const made = await initWith("image-to-image.json", machine.address);
    expect(made.stdout).toContain(
      "note   the sheet names picture.png as its input: put one beside the sheet",
    );
    at.write("set/jobs/picture.png", pixel);
    const ended = await run(at, ["run", "jobs/first.csv", "--yes"], { cwd: join(at.folder, "set") });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect([...machine.uploads.values()]).toEqual([pixel]);
  });

  test("asks for the workflow on a terminal", async () => {
    const { address } = await comfyUi();
    const asking = started(at, ["init", "set", "--provider", "comfyui", "--base-url", address], {
      keyboard: true,
      columns: 100,
    });
    await asking.prints(/The workflow's file/);
    asking.type(`${workflows}text-to-image.json\r`);
    const ended = await asking.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(modelsOf("set").models[0].bind.prompt).toBe("6.text");
  });

  test.each(["flux.json", "controlnet.json", "image-to-image.json", "image-to-video.json"])(
    "%s becomes a models file without mistakes",
    async (file) => {
      const { address } = await comfyUi();
      const made = await initWith(file, address);
      expect(made, made.stderr).toMatchObject({ code: 0 });
      const checked = await run(at, ["serve", "check"], { cwd: join(at.folder, "set") });
      expect(checked, checked.stdout + checked.stderr).toMatchObject({ code: 0 });
    },
  );

  test("says that ComfyUI does not answer, and writes what the workflow alone tells", async () => {
    const machine = await comfyUi();
    await machine.stop();
    const made = await initWith("text-to-image.json", machine.address);
    expect(made).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("note   ComfyUI does not answer at"),
    });
    expect(modelsOf("set").models[0].bind.prompt).toBe("6.text");
  });

  test("says what it could not find, and which line is left to write", async () => {
    const machine = await comfyUi();
    const workflow = JSON.parse(readFileSync(`${workflows}text-to-image.json`, "utf8"));
    workflow["6"] = { class_type: "Mystery", inputs: {} };
    at.write("odd.json", JSON.stringify(workflow));
    const flags = ["--workflow", "odd.json", "--base-url", machine.address];
    const made = await run(at, ["init", "--provider", "comfyui", ...flags]);
    expect(made.code, made.stderr).toBe(0);
    expect(made.stdout).toContain("note   this ComfyUI has no node Mystery\n");
    expect(made.stdout).toContain("does not say which input of the workflow takes the prompt");
    expect(made.stdout).toContain(
      "note   no text leads to a sampler: say under bind which input takes the prompt",
    );
    // A workflow that is in the workspace already is used where it lies.
    expect(parse(read("models.yaml")).models[0].workflow).toBe("odd.json");
  });

  test("refuses what the editor saves, with the way to save the other", async () => {
    const { address } = await comfyUi();
    const refused = await initWith("editor-format.json", address);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("Workflow → Export (API)") });
    expect(existsSync(join(at.folder, "set"))).toBe(false);
  });
});
