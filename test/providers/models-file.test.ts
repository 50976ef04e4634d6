import { afterEach, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import type { JsonObject } from "../../src/providers/provider.js";
import { BflUpstream } from "../upstreams/bfl.js";
import { FalUpstream } from "../upstreams/fal.js";
import { OpenAiUpstream } from "../upstreams/openai.js";
import type { Upstream } from "../upstreams/upstream.js";
import { finished, jobOf, kindNamed, openKind, settingsOf } from "./http-kinds.js";

/** Models as people write them in models.yaml, down to what the vendor gets. */
const open: (() => void | Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function made(
  upstream: Upstream & { key: string },
  kind: string,
  {
    base = "",
    text,
    params = {},
    ...over
  }: {
    base?: string;
    text: string;
    params?: Record<string, string>;
    headers?: Record<string, string>;
    details?: JsonObject;
  },
) {
  await upstream.start();
  const written = parse(text.replaceAll("https://api.bfl.ai", upstream.url)) as JsonObject;
  const schema = z.strictObject(kindNamed(kind).model);
  const details = schema.parse(written) as JsonObject;
  const model = jobOf({ category: "image", request: {} }, "").model;
  const settings = settingsOf(kind, over);
  expect(kindNamed(kind).check?.({ ...model, details }, "/", Object.keys(params), settings)).toEqual([]);
  const addresses = kind === "http" ? [] : [upstream.url + base];
  const { provider } = openKind(kind, { key: upstream.key, addresses, ...over });
  open.push(
    () => provider.close?.(),
    () => upstream.stop(),
  );
  const job = jobOf({ category: "image", request: {} }, "a red fox", { params });
  return finished(provider, { ...job, model: { ...job.model, details } });
}

it("a model of OpenAI, with a parameter that chooses the size", async () => {
  const upstream = new OpenAiUpstream();
  await made(upstream, "openai", {
    base: "/v1",
    params: { aspect_ratio: "16:9", quality: "high" },
    text: `
request: { model: gpt-image-2, quality: "{{ quality }}", size: { from: aspect_ratio, map: { "1:1": 1024x1024, "16:9": 1536x1024 } } }
`,
  });
  expect(upstream.books[0]?.input).toEqual({
    model: "gpt-image-2",
    quality: "high",
    size: "1536x1024",
    prompt: "a red fox",
  });
});

it("a model of fal, with a film as its output", async () => {
  const upstream = new FalUpstream();
  const done = await made(upstream, "fal", {
    params: { duration: "5" },
    text: `
request: { path: fal-ai/some-video, prompt: "{{ prompt }}", image_url: "{{ image }}", duration: "{{ duration }}" }
outputs: video.url
`,
  });
  expect(upstream.books[0]?.input).toEqual({
    path: "/fal-ai/some-video",
    prompt: "a red fox",
    duration: "5",
  });
  expect(done.outputs).toHaveLength(1);
});

it("a model of any API, described where it is used", async () => {
  const upstream = new BflUpstream();
  const done = await made(upstream, "http", {
    headers: { "x-key": "{{ key }}" },
    details: { hosts: ["127.0.0.1"] },
    text: `
submit: { post: https://api.bfl.ai/v1/flux-pro-1.1, body: { prompt: "{{ prompt }}" }, ref: id, poll: polling_url }
poll: { status: status, running: [Pending], done: [Ready], moderated: [Request Moderated, Content Moderated], outputs: result.sample, cost: cost }
`,
  });
  expect(upstream.books[0]?.input).toEqual({ prompt: "a red fox" });
  expect(done.outputs).toHaveLength(1);
});
