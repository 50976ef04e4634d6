import { once } from "node:events";
import { cpSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { kinds } from "../../src/serve/kinds.js";
import { readModelsFile } from "../../src/serve/models/models-file.js";
import { png } from "../upstreams/upstream.js";
import { examples, makesItsSheet } from "./examples.js";
import { afterwards, Place } from "./place.js";

/** Its test needs a browser: test/browser/examples.test.ts. */
const inBrowser = "template-html";

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
  expect(failed).toMatchObject({
    status: "failed",
    error: "out of paint",
    credits_consumed: 0,
  });
});

test.each(readdirSync(examples).filter((name) => name !== inBrowser))(
  "examples/models/%s makes every row of its sheet, at the price that is listed",
  makesItsSheet,
);
