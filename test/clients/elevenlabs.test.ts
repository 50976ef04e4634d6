import { expect, it } from "vitest";
import { ElevenLabsUpstream } from "../upstreams/elevenlabs.js";
import { mp3 } from "../upstreams/upstream.js";

/** What is used of the client: its own types are there only while this test is run. */
interface Client {
  textToSpeech: { convert(voice: string, request: object): Promise<AsyncIterable<Uint8Array>> };
  history: { list(): Promise<{ history: object[] }> };
}

/** Not written as one word, because the package is there only while this test is run. */
const name = ["@elevenlabs", "elevenlabs-js"].join("/");

it("ElevenLabs' client gets speech and its history", async () => {
  const upstream = await new ElevenLabsUpstream().start();
  const { ElevenLabsClient } = (await import(name)) as { ElevenLabsClient: new (options: object) => Client };
  const client = new ElevenLabsClient({ apiKey: upstream.key, baseUrl: upstream.url, maxRetries: 0 });
  const chunks: Uint8Array[] = [];
  const speech = await client.textToSpeech.convert("rachel", { text: "Hello", modelId: "eleven_v3" });
  for await (const chunk of speech) chunks.push(chunk);
  expect(Buffer.concat(chunks)).toEqual(mp3);
  expect((await client.history.list()).history[0]).toMatchObject({ text: "Hello", voiceId: "rachel" });
  await expect(client.textToSpeech.convert("rachel", { text: "poor" })).rejects.toMatchObject({
    statusCode: 401,
  });
  await upstream.stop();
});
