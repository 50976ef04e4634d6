import { createFalClient } from "@fal-ai/client";
import { GoogleGenAI } from "@google/genai";
import OpenAI, { toFile } from "openai";
import Replicate from "replicate";
import { afterEach, expect, it } from "vitest";
import { FalUpstream } from "./fal.js";
import { GeminiUpstream } from "./gemini.js";
import { OpenAiUpstream } from "./openai.js";
import { ReplicateUpstream } from "./replicate.js";
import { mp3, png, type Upstream } from "./upstream.js";

/** The vendors' own clients work against the stand-ins, so the stand-ins are like the vendors. ElevenLabs': test/clients. */
const running: Upstream[] = [];

async function started<One extends Upstream>(upstream: One): Promise<One> {
  running.push(upstream);
  return (await upstream.start()) as One;
}

afterEach(async () => {
  for (const upstream of running.splice(0)) await upstream.stop();
});

it("OpenAI's client gets pictures, edits and speech, and errors as it knows them", async () => {
  const upstream = await started(new OpenAiUpstream());
  const client = new OpenAI({ apiKey: upstream.key, baseURL: `${upstream.url}/v1`, maxRetries: 0 });
  const made = await client.images.generate({ model: "gpt-image-2", prompt: "a fox", size: "1024x1024" });
  expect(Buffer.from(made.data?.[0]?.b64_json ?? "", "base64")).toEqual(png);
  const edited = await client.images.edit({
    model: "gpt-image-2",
    prompt: "a hat",
    image: await toFile(png, "a.png", { type: "image/png" }),
  });
  expect(edited.data).toHaveLength(1);
  const speech = await client.audio.speech.create({ model: "gpt-tts", voice: "alloy", input: "Hello" });
  expect(Buffer.from(await speech.arrayBuffer())).toEqual(mp3);
  expect((await client.models.list()).data[0]?.id).toBe("gpt-image-2");
  await expect(client.images.generate({ model: "gpt-image-2", prompt: "forbidden" })).rejects.toMatchObject({
    status: 400,
    code: "moderation_blocked",
  });
  upstream.next("submit", { status: 429 });
  await expect(client.images.generate({ model: "gpt-image-2", prompt: "x" })).rejects.toMatchObject({
    name: "Error",
    status: 429,
    code: "rate_limit_exceeded",
  });
});

it("fal's client submits, polls, cancels, and gets a result or what was wrong with it", async () => {
  const upstream = await started(new FalUpstream());
  const client = createFalClient({
    credentials: upstream.key,
    suppressLocalCredentialsWarning: true,
    fetch: (url, init) => fetch(String(url).replace("https://queue.fal.run", upstream.url), init),
  });
  upstream.polls = 0;
  const { data } = await client.subscribe("fal-ai/flux/dev", { input: { prompt: "a fox" }, pollInterval: 1 });
  expect(data.images[0]?.url).toContain("/files/");
  await expect(
    client.subscribe("fal-ai/flux/dev", { input: { prompt: "forbidden" }, pollInterval: 1 }),
  ).rejects.toMatchObject({ status: 422, body: { detail: [{ type: "content_policy_violation" }] } });
  upstream.polls = 5;
  const { request_id } = await client.queue.submit("fal-ai/flux/dev", { input: { prompt: "b" } });
  expect((await client.queue.status("fal-ai/flux/dev", { requestId: request_id })).status).toBe("IN_QUEUE");
  await client.queue.cancel("fal-ai/flux/dev", { requestId: request_id });
});

it("Replicate's client creates, gets, lists and cancels predictions", async () => {
  const upstream = await started(new ReplicateUpstream());
  const client = new Replicate({ auth: upstream.key, baseUrl: `${upstream.url}/v1` });
  const made = await client.predictions.create({ model: "a/b", input: { prompt: "a fox" } });
  expect(made.status).toBe("starting");
  const done = await client.wait(made, { interval: 1 });
  expect(done).toMatchObject({
    status: "succeeded",
    output: expect.stringContaining("/files/"),
    error: null,
  });
  const second = await client.predictions.create({ version: "c", input: { prompt: "b" } });
  expect((await client.predictions.cancel(second.id)).status).toBe("aborted");
  const { results } = await client.predictions.list();
  expect(results.map(({ id, input }) => [id, input])).toEqual([
    [second.id, { prompt: "b" }],
    [made.id, { prompt: "a fox" }],
  ]);
});

it("Gemini's client gets a picture, a reason, and errors as it knows them", async () => {
  const upstream = await started(new GeminiUpstream());
  const client = new GoogleGenAI({ apiKey: upstream.key, httpOptions: { baseUrl: upstream.url } });
  const ask = (contents: string) => client.models.generateContent({ model: "gemini-3-pro-image", contents });
  const made = await ask("a fox");
  const images = made.candidates?.[0]?.content?.parts?.filter((part) => part.inlineData && !part.thought);
  expect(images?.[0]?.inlineData?.data).toBe(png.toString("base64"));
  expect((await ask("forbidden")).promptFeedback?.blockReason).toBe("PROHIBITED_CONTENT");
  expect((await ask("unsafe picture")).candidates?.[0]?.finishReason).toBe("IMAGE_SAFETY");
  upstream.next("submit", { status: 429 });
  await expect(ask("b")).rejects.toMatchObject({ status: 429 });
});
