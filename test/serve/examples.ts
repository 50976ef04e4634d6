import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "csv-parse/sync";
import sharp from "sharp";
import { expect } from "vitest";
import { BflUpstream } from "../upstreams/bfl.js";
import { ComfyUi } from "../upstreams/comfyui.js";
import { ElevenLabsUpstream } from "../upstreams/elevenlabs.js";
import { FalUpstream } from "../upstreams/fal.js";
import { GeminiUpstream } from "../upstreams/gemini.js";
import { OpenAiUpstream } from "../upstreams/openai.js";
import { ReplicateUpstream } from "../upstreams/replicate.js";
import type { Upstream } from "../upstreams/upstream.js";
import { afterwards, Place } from "./place.js";

/** The examples as they are shipped, each with the sheet beside it, against a stand-in for its vendor. */
export const examples = fileURLToPath(new URL("../../examples/models/", import.meta.url));

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

/** Every row of the example's sheet is made, at the price that is listed and in the size that it asks for. */
export async function makesItsSheet(name: string): Promise<void> {
  const place = await opened(name);
  // A program or browser has to keep up with the clock.
  if (vendors[name] === undefined) place.stepMs = 2;
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
}
