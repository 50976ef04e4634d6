import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { afterThisFile } from "../after-file.js";
import { BflUpstream } from "../upstreams/bfl.js";
import { ComfyUi } from "../upstreams/comfyui.js";
import { ElevenLabsUpstream } from "../upstreams/elevenlabs.js";
import { FalUpstream } from "../upstreams/fal.js";
import { GeminiUpstream } from "../upstreams/gemini.js";
import { OpenAiUpstream } from "../upstreams/openai.js";
import { ReplicateUpstream } from "../upstreams/replicate.js";
import { png } from "../upstreams/upstream.js";
import { indexOf } from "./archive.js";
import { newPlace, run } from "./command.js";

/**
 * Every model of the sheet: its price, its rows, and what its last row is refused for, if it is. Some vendors have that in their
 * books, too, and what failed for no fault of the request is tried once more.
 */
const models: Record<
  string,
  { credits: number; rows: number; refused?: string; kind?: string; booked?: number }
> = {
  hero: { credits: 4, rows: 4, refused: "by content moderation: Your request was", kind: "moderation" },
  edit: { credits: 6, rows: 4, refused: "by content moderation: Your request was", kind: "moderation" },
  speech: { credits: 1, rows: 2 },
  queue: { credits: 5, rows: 4, refused: "flagged by a content checker", kind: "moderation", booked: 1 },
  clip: { credits: 3, rows: 4, refused: "flagged as sensitive", kind: "moderation", booked: 1 },
  gem: { credits: 7, rows: 4, refused: "PROHIBITED_CONTENT", kind: "moderation" },
  voice: { credits: 2, rows: 4, refused: "The text is not allowed", kind: "moderation" },
  flux: { credits: 3, rows: 4, refused: 'bfl says "Request Moderated"', kind: "moderation", booked: 1 },
  house: { credits: 0.5, rows: 3 },
  sick: { credits: 0.5, rows: 1, refused: "CUDA out of memory", kind: "provider", booked: 2 },
  draw: { credits: 1, rows: 4, refused: "there is no such colour", kind: "provider" },
  banner: { credits: 0.25, rows: 2 },
};

const rows = Object.entries(models).flatMap(([model, { rows: count, refused }]) =>
  Array.from({ length: count }, (_, index) => {
    const isRefused = refused !== undefined && index === count - 1;
    const id = `${model}-${index + 1}`;
    return { id, model, prompt: isRefused ? `forbidden ${id}` : id, isRefused };
  }),
);

test("40 rows over every kind of provider end for their reasons: each is sent once, and paid once if it is made", async () => {
  const vendors = {
    openai: new OpenAiUpstream(),
    fal: new FalUpstream(),
    replicate: new ReplicateUpstream(),
    gemini: new GeminiUpstream(),
    elevenlabs: new ElevenLabsUpstream(),
    bfl: new BflUpstream(),
  };
  for (const vendor of Object.values(vendors)) {
    await vendor.start();
    afterThisFile(() => vendor.stop());
  }
  const machines = [await new ComfyUi().listen(), await new ComfyUi().listen()] as const;
  for (const machine of machines) afterThisFile(() => machine.stop());
  machines[1].fails = "CUDA out of memory";

  const { openai, fal, replicate, gemini, elevenlabs, bfl } = vendors;
  openai.next("submit", { status: 429, retryAfter: "7" });
  gemini.next("submit", { status: 429 });
  elevenlabs.next("submit", { status: 429 });
  replicate.next("submit", { status: 429, retryAfter: "3" });
  for (const vendor of [fal, replicate, bfl])
    vendor.next("poll", { status: 503 }, { status: 503 }, { status: 429, retryAfter: "5" });

  const at = newPlace();
  const env = {
    OPENAI_API_KEY: openai.key,
    FAL_KEY: fal.key,
    REPLICATE_API_TOKEN: replicate.key,
    GEMINI_API_KEY: gemini.key,
    ELEVENLABS_API_KEY: elevenlabs.key,
    BFL_API_KEY: bfl.key,
  };
  at.write("photos/cup.png", png);
  at.write(
    "banner.svg",
    `<svg xmlns="http://www.w3.org/2000/svg" width="80" height="60"><text y="20">{{ prompt }}</text></svg>`,
  );
  at.write(
    "draw.sh",
    'case "$4" in *forbidden*) echo "there is no such colour" >&2; exit 3;; esac\ncp "$2/photos/cup.png" "$1.png"\n',
  );
  mkdirSync(join(at.folder, "flows"));
  copyFileSync(
    new URL("../providers/workflows/text-to-image.json", import.meta.url),
    join(at.folder, "flows", "picture.json"),
  );
  const flow = "workflow: flows/picture.json, bind: { prompt: 6.text }";
  const price = (name: string) => `credits: ${models[name]?.credits}`;
  at.write(
    "models.yaml",
    `credit: { value: 0.01, currency: USD }
providers:
  openai: { kind: openai, base_url: "${openai.url}/v1" }
  fal: { kind: fal, base_url: "${fal.url}" }
  replicate: { kind: replicate, base_url: "${replicate.url}" }
  gemini: { kind: gemini, base_url: "${gemini.url}" }
  elevenlabs: { kind: elevenlabs, base_url: "${elevenlabs.url}" }
  bfl: { kind: http, description: bfl, base_url: "${bfl.url}", hosts: ["127.0.0.1"], key_env: BFL_API_KEY }
  house: { kind: comfyui, base_url: "${machines[0].address}" }
  sick: { kind: comfyui, base_url: "${machines[1].address}" }
models:
  - { key: hero, provider: openai, category: image, ${price("hero")}, request: { model: gpt-image-2 } }
  - { key: edit, provider: openai, category: image, input: text+image, ${price("edit")}, request: { model: gpt-image-2 } }
  - { key: speech, provider: openai, category: audio, ${price("speech")}, request: { model: tts, voice: nova } }
  - { key: queue, provider: fal, category: image, ${price("queue")}, request: { path: fal-ai/flux/dev } }
  - { key: clip, provider: replicate, category: image, ${price("clip")}, request: { model: acme/painter } }
  - { key: gem, provider: gemini, category: image, ${price("gem")}, request: { model: gemini-3-pro-image } }
  - { key: voice, provider: elevenlabs, category: audio, ${price("voice")}, request: { voice_id: rachel, model_id: eleven_v3 } }
  - { key: flux, provider: bfl, category: image, ${price("flux")}, request: { path: flux-2-pro } }
  - { key: house, provider: house, category: image, ${price("house")}, ${flow} }
  - { key: sick, provider: sick, category: image, ${price("sick")}, ${flow} }
  - { key: draw, provider: { kind: command }, category: image, ${price("draw")}, command: [sh, "{{ folder }}/draw.sh", "{{ out }}", "{{ folder }}", --, "{{ prompt }}"] }
  - { key: banner, provider: { kind: template }, category: image, ${price("banner")}, template: banner.svg }
`,
  );
  // Pictures that are changed: of this disk, and one that another row makes.
  const input = ({ model, id }: (typeof rows)[number]) =>
    model !== "edit" ? "" : id === "edit-3" ? "@hero-1" : "photos/cup.png";
  at.write(
    "set.csv",
    [
      "id,model,prompt,image_url",
      ...rows.map((row) => `${row.id},${row.model},${row.prompt},${input(row)}`),
    ].join("\n"),
  );
  await run(at, ["trust", "--models", "models.yaml", "--yes"], { env });
  const ended = await run(at, ["run", "set.csv", "--models", "models.yaml", "--yes", "--json"], { env });

  const { exitName, counts, failures, held, credits } = JSON.parse(ended.stdout);
  const refused = rows.filter(({ isRefused }) => isRefused);
  expect({ exitName, held }, ended.stderr).toEqual({ exitName: "failed", held: [] });
  expect(counts).toMatchObject({ archived: rows.length - refused.length, failed: refused.length });
  expect(failures).toEqual(
    refused.map(({ id, model }) => ({
      rowId: id,
      kind: models[model]?.kind,
      reason: expect.stringContaining(models[model]?.refused ?? ""),
    })),
  );
  const files = indexOf(join(at.folder, "outputs", "set"));
  expect(files.map(({ item }) => item).toSorted()).toEqual(
    rows
      .filter(({ isRefused }) => !isRefused)
      .map(({ id }) => id)
      .toSorted(),
  );
  const paid = rows.reduce(
    (sum, { model, isRefused }) => sum + (isRefused ? 0 : (models[model]?.credits ?? 0)),
    0,
  );
  expect(credits).toMatchObject({ spent: paid, pending: 0, lost: 0 });

  const made = [
    ...Object.values(vendors).flatMap(({ books }) => books.map(({ prompt }) => prompt)),
    ...machines.flatMap(({ ledger }) => ledger.map(({ workflow }) => workflow["6"]?.inputs["text"])),
  ];
  const here = ["draw", "banner"];
  const booked = rows
    .filter(({ model }) => !here.includes(model))
    .flatMap(({ model, prompt, isRefused }) =>
      Array.from({ length: isRefused ? (models[model]?.booked ?? 0) : 1 }, () => prompt),
    );
  expect(made.toSorted()).toEqual(booked.toSorted());
});
