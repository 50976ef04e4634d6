import { once } from "node:events";
import { cpSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { parse } from "csv-parse/sync";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { kinds } from "../../src/serve/kinds.js";
import { readModelsFile } from "../../src/serve/models/models-file.js";
import { BflUpstream } from "../upstreams/bfl.js";
import { ComfyUi } from "../upstreams/comfyui.js";
import { ElevenLabsUpstream } from "../upstreams/elevenlabs.js";
import { FalUpstream } from "../upstreams/fal.js";
import { GeminiUpstream } from "../upstreams/gemini.js";
import { OpenAiUpstream } from "../upstreams/openai.js";
import { ReplicateUpstream } from "../upstreams/replicate.js";
import { png, type Upstream } from "../upstreams/upstream.js";
import { afterwards, Place } from "./place.js";

/** The examples as they are shipped, each with the sheet beside it, against a stand-in for its vendor. */
const examples = fileURLToPath(new URL("../../examples/models/", import.meta.url));

const vendors: Readonly<Record<string, { make: () => Upstream & { key: string }; base?: string }>> = {
  openai: { make: () => new OpenAiUpstream(), base: "/v1" },
  fal: { make: () => new FalUpstream() },
  replicate: { make: () => new ReplicateUpstream() },
  gemini: { make: () => new GeminiUpstream() },
  elevenlabs: { make: () => new ElevenLabsUpstream() },
  http: { make: () => new BflUpstream() },
};

/** Address and key of the stand-in in place of the vendor's. */
async function standIn(name: string): Promise<{ address: string | null; key: string }> {
  const vendor = vendors[name];
  if (vendor !== undefined) {
    const upstream = await vendor.make().start();
    afterwards(() => upstream.stop());
    return { address: upstream.url + (vendor.base ?? ""), key: upstream.key };
  }
  if (name !== "comfyui") return { address: null, key: "" };
  const machine = await new ComfyUi().listen();
  afterwards(() => machine.stop());
  return { address: machine.address, key: "" };
}

async function opened(name: string): Promise<Place> {
  const { address, key } = await standIn(name);
  const written = readFileSync(join(examples, name, "models.yaml"), "utf8");
  const text =
    address === null
      ? written
      : written
          .replace(/^ +base_url: .*\n/m, "")
          .replace(/^( +)kind: .*$/m, `$&\n$1base_url: "${address}"`)
          .replace("hosts: [bfl.ai]", 'hosts: ["127.0.0.1"]');
  const [, variable = "NO_KEY"] = /key_env: (\w+)/.exec(text) ?? [];
  const place = new Place(text, { env: { ...process.env, [variable]: key } });
  cpSync(join(examples, name), place.folder, {
    recursive: true,
    filter: (path) => !path.endsWith("models.yaml"),
  });
  return place.open();
}

type Row = Record<string, string>;

function bodyOf(row: Row): Record<string, unknown> {
  const { model, prompt } = row;
  const params = Object.entries(row).flatMap(([column, value]) =>
    column.startsWith("params.") && value !== "" ? [[column.slice("params.".length), value]] : [],
  );
  return { model, prompt, params: Object.fromEntries(params) };
}

test("there is an example of every kind of provider", () => {
  const texts = readdirSync(examples).map((name) =>
    readFileSync(join(examples, name, "models.yaml"), "utf8"),
  );
  const shown = new Set(texts.map((text) => /^ +kind: (\w+)$/m.exec(text)?.[1]));
  expect([...shown].toSorted()).toEqual(kinds.map(({ name }) => name).toSorted());
});

test("the models files of docs/models.md are read without a mistake", async () => {
  const page = readFileSync(new URL("../../docs/models.md", import.meta.url), "utf8");
  const shown = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text);
  expect(shown).toHaveLength(4);
  const { folder } = new Place("");
  cpSync(
    join(examples, "comfyui", "flows", "text-to-image.json"),
    join(folder, "flows", "portrait_api.json"),
  );
  for (const text of shown) {
    const { models } = await readModelsFile(text, { file: "models.yaml", folder, kinds });
    expect(models).toHaveLength(1);
  }
});

test("the provider of docs/models.md that is described in twenty lines works", async () => {
  const page = readFileSync(new URL("../../docs/models.md", import.meta.url), "utf8");
  const [, described = ""] =
    /## A provider of your own in twenty lines[\s\S]*?```yaml\n([\s\S]*?)^```$/m.exec(page) ?? [];
  expect(described.trimEnd().split("\n").length).toBeLessThanOrEqual(20);
  const asked: unknown[] = [];
  const states = ["queued", "working", "finished", "failed"];
  const vendor = createServer(async (request, response) => {
    const body = await text(request);
    const address = `http://${request.headers.host}`;
    asked.push([`${request.method} ${request.url}`, request.headers.authorization, body]);
    if (request.url === "/kite.png") return void response.end(png);
    const state =
      request.method === "POST"
        ? { job: { id: "7" } }
        : { state: states.shift(), files: [{ url: `${address}/kite.png` }], message: "out of paint" };
    response.setHeader("content-type", "application/json").end(JSON.stringify(state));
  });
  vendor.listen(0, "127.0.0.1");
  await once(vendor, "listening");
  afterwards(() => vendor.close());
  const url = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  const env = { STUDIO_KEY: "studio-0123456789" };
  const place = await new Place(described.replace("https://api.example.com", url), { env }).open();
  const wanted = { model: "poster", prompt: "a kite", params: { style: "drawing", steps: "4" } };
  expect(await place.finished(await place.generate(wanted))).toMatchObject({
    status: "completed",
    credits_consumed: 5,
  });
  const key = `Bearer ${env.STUDIO_KEY}`;
  expect(asked).toEqual([
    ["POST /v2/images", key, JSON.stringify({ text: "a kite", style: "drawing", steps: 4 })],
    ...Array.from({ length: 3 }, () => ["GET /v2/jobs/7", key, ""]),
    ["GET /kite.png", undefined, ""],
  ]);
  const failed = await place.finished(await place.generate(wanted));
  expect(failed).toMatchObject({ status: "failed", error: "out of paint", credits_consumed: 0 });
});

describe.each(readdirSync(examples))("examples/models/%s", (name) => {
  test("makes every row of its sheet, at the price that is listed", async () => {
    const place = await opened(name);
    // A browser has to start within the minute that a page may take.
    place.stepMs = 2;
    const rows: Row[] = parse(readFileSync(join(place.folder, "jobs", "first.csv")), { columns: true });
    expect(rows.length).toBeGreaterThan(1);
    for (const row of rows) {
      const task = await place.finished(await place.generate(bodyOf(row)));
      expect(task, `${row["id"]}: ${place.notes.join()}`).toMatchObject({ status: "completed", error: null });
      const { bytes, headers } = await place.bytes(task);
      const model = place.service.listedModels.find(({ key }) => key === row["model"]);
      expect(headers.get("content-type")).toMatch(new RegExp(`^${model?.category}/`));
      const ofOptions = (model?.parameters ?? []).flatMap(({ key, options }) =>
        options.flatMap(({ value, credits_cost = null }) =>
          credits_cost !== null && row[`params.${key}`] === value ? [credits_cost] : [],
        ),
      );
      expect(task.credits_consumed, row["id"]).toBe(ofOptions[0] ?? model?.credits);
      const size = row["params.size"];
      if (size === undefined) continue;
      const { width, height } = await sharp(bytes).metadata();
      expect(`${width}x${height}`, row["id"]).toBe(size);
    }
  });
});
