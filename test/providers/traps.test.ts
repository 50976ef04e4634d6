import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { JobRefused, Sent } from "../../src/providers/provider.js";
import { mp3, png, type Upstream } from "../upstreams/upstream.js";
import {
  finished,
  jobOf,
  never,
  openVendor,
  outcomeOf,
  pictureIn,
  type Vendor,
  vendors,
} from "./http-kinds.js";

/** What each vendor is known for: the column "Beware" of the providers. */
const open: (() => Promise<void>)[] = [];
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-traps-"));
});
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});
afterAll(() => rmSync(folder, { recursive: true }));

async function started<One extends Vendor>(vendor: One) {
  const upstream = (await vendor.make().start()) as ReturnType<One["make"]>;
  const { provider, clock } = openVendor(vendor, upstream as Upstream & { key: string });
  open.push(async () => {
    await provider.close?.();
    await upstream.stop();
  });
  return { upstream, provider, clock };
}

/** The refusal that a job ends with. */
async function refusal(promise: Promise<object>): Promise<Pick<JobRefused, "kind" | "message" | "billed">> {
  const { error } = await outcomeOf(promise);
  expect(error?.name).toBe("JobRefused");
  const { kind, message, billed } = error as JobRefused;
  return { kind, message, billed };
}

describe("OpenAI", () => {
  const { openai } = vendors;

  it("gives pictures in base64, or at addresses that get no key", async () => {
    const { upstream, provider } = await started(openai);
    expect((await finished(provider, jobOf(openai, "one"))).outputs).toEqual([{ bytes: png }]);
    upstream.asUrls = true;
    const { outputs } = await finished(provider, jobOf(openai, "two"));
    expect(outputs).toEqual([{ url: expect.stringContaining("/files/") }]);
  });

  it("is not sent a response_format that GPT image models refuse", async () => {
    const { upstream, provider } = await started(openai);
    await finished(provider, jobOf(openai, "one"));
    expect(upstream.asked[0]?.json).toEqual({ model: "gpt-image-2", prompt: "one" });
    const own = { ...openai, request: { model: "gpt-image-2", response_format: "b64_json" } };
    expect(await refusal(provider.submit(jobOf(own, "two"), never))).toMatchObject({
      kind: "parameter",
      message: "Unknown parameter: 'response_format'.",
      billed: false,
    });
  });

  it("refuses for good when there is no money, although the status is 429", async () => {
    const { upstream, provider } = await started(openai);
    const error = {
      message: "You exceeded your current quota.",
      type: "insufficient_quota",
      code: "insufficient_quota",
    };
    upstream.next("submit", { status: 429, body: { error } });
    expect(await refusal(provider.submit(jobOf(openai, "one"), never))).toEqual({
      kind: "provider",
      message: "You exceeded your current quota.",
      billed: false,
    });
  });

  it("says moderation_blocked with a 400", async () => {
    const { provider } = await started(openai);
    expect(await refusal(provider.submit(jobOf(openai, "forbidden"), never))).toMatchObject({
      kind: "moderation",
      message: "Your request was rejected by the safety system.",
    });
  });

  it("has failed when it says so itself with a 500", async () => {
    const { upstream, provider } = await started(openai);
    upstream.next("submit", { status: 500 });
    expect(await refusal(provider.submit(jobOf(openai, "one"), never))).toMatchObject({
      kind: "provider",
      billed: null,
    });
  });

  it("has made nothing when it lists nothing", async () => {
    const { provider } = await started(openai);
    expect(await refusal(provider.submit(jobOf(openai, "nothing"), never))).toMatchObject({
      kind: "provider",
    });
  });

  it("gets a picture to edit as a file of a form", async () => {
    const { upstream, provider } = await started(openai);
    const image = pictureIn(folder, "https://example.com/input.png");
    const own = {
      ...openai,
      request: { model: "gpt-image-2", size: { from: "size", map: { "1:1": "1024x1024" } } },
    };
    await finished(provider, jobOf(own, "with a hat", { media: { image }, params: { size: "1:1" } }));
    expect(upstream.asked[0]?.path).toBe("/v1/images/edits");
    expect(upstream.books[0]?.input).toEqual({
      model: "gpt-image-2",
      prompt: "with a hat",
      size: "1024x1024",
      image: { name: "image.png", type: "image/png", bytes: image.bytes },
    });
  });

  it("speaks: the answer is the sound", async () => {
    const { provider } = await started(openai);
    const own = { ...openai, category: "audio", request: { model: "gpt-tts", voice: "alloy" } } as const;
    expect((await finished(provider, jobOf(own, "Hello"))).outputs).toEqual([{ bytes: mp3 }]);
  });

  it("needs no key at another address", async () => {
    const upstream = await vendors.openai.make().start();
    const { provider } = openVendor(openai, upstream, null);
    open.push(() => upstream.stop());
    await outcomeOf(provider.submit(jobOf(openai, "one"), never));
    expect(upstream.asked[0]?.headers).not.toHaveProperty("authorization");
  });
});

describe("fal", () => {
  const { fal } = vendors;

  it("is polled at the addresses of its answer, which lack a part of the app's path", async () => {
    const { upstream, provider } = await started(fal);
    await finished(provider, jobOf(fal, "one"));
    expect(upstream.asked.map(({ method, path }) => `${method} ${path.replace(/job-\w+/, "ID")}`)).toEqual([
      "POST /fal-ai/flux/dev",
      "GET /fal-ai/flux/requests/ID/status",
      "GET /fal-ai/flux/requests/ID/status",
      "GET /fal-ai/flux/requests/ID",
    ]);
  });

  it("still runs while the result answers 202", async () => {
    const { upstream, provider } = await started(fal);
    upstream.polls = 0;
    const { value } = await outcomeOf(provider.submit(jobOf(fal, "one"), never));
    upstream.next("result", { status: 202 }, { status: 503 }, { after: "empty" }, { after: "truncated" });
    const seen = [];
    for (let count = 0; count < 5; count++)
      seen.push((await outcomeOf(provider.poll!(value.resume!, never))).outcome);
    expect(seen).toEqual(["running", "unknown", "unknown", "unknown", "done"]);
  });

  it("says what was wrong with a parameter at the result", async () => {
    const { provider } = await started(fal);
    const own = { ...fal, request: { path: "fal-ai/video", duration: { number: "{{ duration }}" } } };
    expect(await refusal(finished(provider, jobOf(own, "one", { params: { duration: "5" } })))).toEqual({
      kind: "parameter",
      message: "Input should be a valid string",
      billed: null,
    });
    const good = { ...fal, request: { path: "fal-ai/video", duration: "{{ duration }}" } };
    const done = await finished(provider, jobOf(good, "two", { params: { duration: "5" } }));
    expect(done.outputs).toEqual([{ url: expect.stringMatching(/png$/) }]);
  });

  it("says at the result that its runner broke, and does not bill that", async () => {
    const { provider } = await started(fal);
    expect(await refusal(finished(provider, jobOf(fal, "broken")))).toEqual({
      kind: "provider",
      message: "Runner disconnected",
      billed: false,
    });
  });

  it("has made nothing when its list is empty", async () => {
    const { provider } = await started(fal);
    expect(await refusal(finished(provider, jobOf(fal, "nothing")))).toMatchObject({ kind: "provider" });
  });

  it("is asked to cancel at the address of its answer", async () => {
    const { upstream, provider } = await started(fal);
    const { value } = await outcomeOf(provider.submit(jobOf(fal, "one"), never));
    expect(await provider.cancel!(value.resume!, never)).toEqual({ billed: null });
    expect(upstream.asked.at(-1)).toMatchObject({ method: "PUT", path: expect.stringMatching(/\/cancel$/) });
    expect(await refusal(provider.poll!(value.resume!, never))).toMatchObject({ kind: "provider" });
    await expect(provider.cancel!(value.resume!, never)).rejects.toThrow();
  });

  it("says where in its queue a job is", async () => {
    const { upstream, provider } = await started(fal);
    upstream.polls = 3;
    const { value } = await outcomeOf(provider.submit(jobOf(fal, "one"), never));
    expect(await provider.poll!(value.resume!, never)).toEqual({ running: true, note: "in the queue at 3" });
  });

  it("cannot find a lost job", async () => {
    const { provider } = await started(fal);
    expect(provider.repeatable).toBe("no");
    await expect(provider.find!(jobOf(fal, "one"), never, sentAt(0))).rejects.toThrow(
      "cannot find a lost job",
    );
  });
});

function sentAt(at: number, ...taken: string[]): Sent {
  return { at, isTaken: (ref) => taken.includes(ref) };
}

describe("Replicate", () => {
  const { replicate } = vendors;

  it("is asked for official models, versions and deployments at their addresses, and never to wait", async () => {
    const { upstream, provider } = await started(replicate);
    for (const request of [{ model: "a/b" }, { version: "c/d:ef" }, { deployment: "g/h" }])
      await finished(provider, jobOf({ ...replicate, request }, "one"));
    const posts = upstream.asked.filter(({ method }) => method === "POST");
    expect(posts.map(({ path }) => path)).toEqual([
      "/v1/models/a/b/predictions",
      "/v1/predictions",
      "/v1/deployments/g/h/predictions",
    ]);
    expect(posts[1]?.json).toEqual({ version: "c/d:ef", input: { prompt: "one" } });
    for (const { headers } of posts) {
      expect(headers).not.toHaveProperty("prefer");
      expect(headers["cancel-after"]).toBe("2h");
    }
  });

  it("gives one file or a list of them", async () => {
    const { provider } = await started(replicate);
    for (const prompt of ["one", "a list"])
      expect((await finished(provider, jobOf(replicate, prompt))).outputs).toEqual([
        { url: expect.any(String) },
      ]);
  });

  it("fails in its own words", async () => {
    const { provider } = await started(replicate);
    expect(await refusal(finished(provider, jobOf(replicate, "broken")))).toEqual({
      kind: "provider",
      message: "CUDA out of memory",
      billed: null,
    });
  });

  it("bills what is cancelled while it runs, and not what had not begun", async () => {
    const { provider } = await started(replicate);
    const ends = [];
    for (const polls of [0, 1]) {
      const { value } = await outcomeOf(provider.submit(jobOf(replicate, "one"), never));
      for (let count = 0; count < polls; count++) await provider.poll!(value.resume!, never);
      await provider.cancel!(value.resume!, never);
      ends.push((await refusal(provider.poll!(value.resume!, never))).billed);
    }
    expect(ends).toEqual([false, true]);
  });

  async function lost() {
    const { upstream, provider, clock } = await started(replicate);
    upstream.now = clock.now();
    const lose = async (prompt: string) => {
      upstream.next("submit", { after: "drop" });
      const job = jobOf(replicate, prompt);
      expect((await outcomeOf(provider.submit(job, never))).outcome).toBe("unknown");
      return job;
    };
    return { upstream, provider, clock, lose, sent: sentAt(clock.now()) };
  }

  it("finds a lost job in its listing, on any page, and goes on with it", async () => {
    const { upstream, provider, lose, sent } = await lost();
    const job = await lose("a red fox");
    for (const prompt of ["b", "c", "d"]) await provider.submit(jobOf(replicate, prompt), never);
    upstream.pageSize = 2;
    const found = await provider.find!(job, never, sent);
    expect(found?.ref).toBe(upstream.books[0]?.id);
    let polled = await provider.poll!(found!.resume, never);
    while ("running" in polled) polled = await provider.poll!(found!.resume, never);
    expect(polled.outputs).toEqual([{ url: expect.stringContaining(upstream.books[0]?.id ?? "") }]);
    expect(upstream.times("a red fox")).toBe(1);
  });

  it("takes no job of another model, of an earlier or later time, or that is known to be another's", async () => {
    const { upstream, provider, lose, clock } = await lost();
    const earlier = await lose("a red fox");
    clock.advance(3_600_000);
    upstream.now = clock.now();
    const other = { ...replicate, request: { model: "other/model" } };
    await provider.submit(jobOf(other, "a red fox"), never);
    const { value } = await outcomeOf(provider.submit(jobOf(replicate, "a red fox"), never));
    const sent = sentAt(clock.now(), value.ref ?? "");
    clock.advance(600_000);
    expect(await provider.find!(earlier, never, sent)).toBeNull();
    const found = await provider.find!(earlier, never, sentAt(sent.at - 3_600_000));
    expect(found?.ref).toBe(upstream.books[0]?.id);
  });

  it("does not say that a job was not accepted before ten minutes have passed", async () => {
    const { provider, clock, sent } = await lost();
    const job = jobOf(replicate, "never sent");
    await expect(provider.find!(job, never, sent)).rejects.toThrow("does not list the job yet");
    clock.advance(600_000);
    expect(await provider.find!(job, never, sent)).toBeNull();
  });

  it("cannot tell two of the same, nor one whose input has been removed", async () => {
    const { upstream, provider, clock, lose, sent } = await lost();
    const job = await lose("a red fox");
    await lose("a red fox");
    await expect(provider.find!(job, never, sent)).rejects.toThrow("2 jobs that could be this one");
    upstream.removed = true;
    clock.advance(3_600_000);
    await expect(provider.find!(job, never, sent)).rejects.toThrow("does not prove");
  });

  it("tells nothing from a listing that is broken", async () => {
    const { upstream, provider, lose, sent } = await lost();
    const job = await lose("a red fox");
    upstream.next(
      "list",
      { after: "empty" },
      { after: "html" },
      { after: "wrong types" },
      { status: 503 },
      { after: "drop" },
    );
    for (let count = 0; count < 5; count++)
      expect((await outcomeOf(provider.find!(job, never, sent) as Promise<object>)).outcome).toBe("unknown");
  });
});

describe("Gemini", () => {
  const { gemini } = vendors;

  it("delivers the picture, and neither drafts nor words", async () => {
    const { upstream, provider } = await started(gemini);
    const done = await finished(provider, jobOf(gemini, "one"));
    expect(done).toMatchObject({ outputs: [{ bytes: png }], cost: { amount: 1300, unit: "tokens" } });
    expect(upstream.asked[0]?.json).toEqual({ contents: [{ role: "user", parts: [{ text: "one" }] }] });
  });

  it("gets a picture as base64 beside the prompt", async () => {
    const { upstream, provider } = await started(gemini);
    const image = pictureIn(folder);
    await finished(provider, jobOf(gemini, "one", { media: { image } }));
    expect(upstream.asked[0]?.json).toMatchObject({
      contents: [
        {
          parts: [
            { text: "one" },
            { inlineData: { mimeType: "image/png", data: image.bytes.toString("base64") } },
          ],
        },
      ],
    });
  });

  it("says that a prompt is blocked with a successful answer, in two forms", async () => {
    const { provider } = await started(gemini);
    expect(await refusal(provider.submit(jobOf(gemini, "forbidden"), never))).toEqual({
      kind: "moderation",
      message: "PROHIBITED_CONTENT",
      billed: null,
    });
    expect(await refusal(provider.submit(jobOf(gemini, "unsafe picture"), never))).toEqual({
      kind: "moderation",
      message: "Unable to show the generated image.",
      billed: null,
    });
  });

  it("bills an answer of words alone", async () => {
    const { provider } = await started(gemini);
    expect(await refusal(provider.submit(jobOf(gemini, "words"), never))).toEqual({
      kind: "provider",
      message: "I can only describe it.",
      billed: true,
    });
  });

  it("says in its body how long to wait", async () => {
    const { upstream, provider } = await started(gemini);
    upstream.next("submit", { status: 429 }, { status: 503 });
    expect((await outcomeOf(provider.submit(jobOf(gemini, "one"), never))).error).toMatchObject({
      afterMs: 17_000,
    });
    expect((await outcomeOf(provider.submit(jobOf(gemini, "one"), never))).error).toMatchObject({
      afterMs: 30_000,
    });
  });
});

describe("ElevenLabs", () => {
  const { elevenlabs } = vendors;

  it("speaks with the voice and in the format that the request names", async () => {
    const { upstream, provider } = await started(elevenlabs);
    const request = {
      ...elevenlabs.request,
      output_format: "mp3_44100_128",
      voice_settings: { speed: { number: "{{ speed }}" } },
    };
    const done = await finished(
      provider,
      jobOf({ ...elevenlabs, request }, "Hello", { params: { speed: "1.1" } }),
    );
    expect(done).toMatchObject({ outputs: [{ bytes: mp3 }], cost: { amount: 5, unit: "characters" } });
    expect(upstream.asked[0]).toMatchObject({
      path: "/v1/text-to-speech/rachel?output_format=mp3_44100_128",
      json: { text: "Hello", model_id: "eleven_v3", voice_settings: { speed: 1.1 } },
    });
    const sounds = { ...elevenlabs, request: { path: "sound-generation" } };
    expect((await finished(provider, jobOf(sounds, "a bell"))).outputs).toHaveLength(1);
  });

  it.each(["code", "status"] as const)("has 429 of two kinds, and errors with a %s", async (field) => {
    const { upstream, provider } = await started(elevenlabs);
    upstream.errorField = field;
    upstream.next(
      "submit",
      { status: 429, body: upstream.detail("too_many_concurrent_requests", "Too many at once.") },
      { status: 429, body: upstream.detail("concurrent_limit_exceeded", "Too many at once.") },
      { status: 429 },
    );
    const waits = [];
    for (let count = 0; count < 3; count++)
      waits.push((await outcomeOf(provider.submit(jobOf(elevenlabs, "Hello"), never))).error);
    expect(waits).toMatchObject([{ afterMs: 5000 }, { afterMs: 5000 }, { afterMs: 30_000 }]);
    expect(await refusal(provider.submit(jobOf(elevenlabs, "poor"), never))).toEqual({
      kind: "provider",
      message: "This request exceeds your quota.",
      billed: false,
    });
    const nobody = { ...elevenlabs, request: { voice_id: "nobody" } };
    expect(await refusal(provider.submit(jobOf(nobody, "Hello"), never))).toMatchObject({
      kind: "parameter",
    });
  });

  it("finds a lost job in its history; that it is not there proves nothing", async () => {
    const { upstream, provider, clock } = await started(elevenlabs);
    upstream.now = clock.now();
    upstream.next("submit", { after: "drop" });
    const job = jobOf(elevenlabs, "Hello");
    await outcomeOf(provider.submit(job, never));
    expect(provider.repeatable).toBe("by id");
    const found = await provider.find!(job, never, sentAt(clock.now()));
    expect(await provider.poll!(found!.resume, never)).toMatchObject({ outputs: [{ bytes: mp3 }] });
    expect(upstream.times("Hello")).toBe(1);
    clock.advance(24 * 3_600_000);
    await expect(provider.find!(jobOf(elevenlabs, "Bye"), never, sentAt(0))).rejects.toThrow(
      "does not prove",
    );
  });

  it("takes nothing in its history for a job of which the history shows nothing", async () => {
    const { upstream, provider, clock } = await started(elevenlabs);
    upstream.now = clock.now();
    await provider.submit(jobOf(elevenlabs, "Hello"), never);
    const music = { ...elevenlabs, request: { path: "music", prompt: "{{ prompt }}" } };
    const sent = sentAt(clock.now());
    await expect(provider.find!(jobOf(music, "a waltz"), never, sent)).rejects.toThrow("does not prove");
  });
});

describe("BFL", () => {
  const { bfl } = vendors;

  it("gets the key at its polling address, which is on another host", async () => {
    const { upstream, provider } = await started(bfl);
    const done = await finished(provider, jobOf(bfl, "one"));
    expect(done).toMatchObject({
      outputs: [{ url: expect.stringMatching(/jpeg$/) }],
      cost: { amount: 4, unit: "credits" },
    });
    expect(upstream.asked[0]?.json["output_format"]).toBe("png");
  });

  it("gets no key at a host that the provider does not name, and is asked on when it does", async () => {
    const { upstream, provider } = await started({ ...bfl, details: { description: "bfl" } } as typeof bfl);
    const { value } = await outcomeOf(provider.submit(jobOf(bfl, "one"), never));
    const { outcome, message } = await outcomeOf(provider.poll!(value.resume!, never));
    expect({ outcome, message }).toEqual({
      outcome: "unknown",
      message: expect.stringContaining('"hosts: [127.0.0.1]"'),
    });
    expect(upstream.asked).toHaveLength(1);
    const again = openVendor(bfl, upstream).provider;
    let polled = await again.poll!(value.resume!, never);
    while ("running" in polled) polled = await again.poll!(value.resume!, never);
    expect(polled.outputs).toHaveLength(1);
    await again.close?.();
  });

  it("is asked again for a result whose address has expired, at no cost", async () => {
    const { upstream, provider } = await started(bfl);
    const { value } = await outcomeOf(provider.submit(jobOf(bfl, "one"), never));
    upstream.polls = 0;
    const ask = async () => {
      let polled = await provider.poll!(value.resume!, never);
      while ("running" in polled) polled = await provider.poll!(value.resume!, never);
      return (polled.outputs[0] as { url: string }).url;
    };
    upstream.expired = true;
    expect((await fetch(await ask())).status).toBe(403);
    upstream.expired = false;
    expect((await fetch(await ask())).status).toBe(200);
    expect(upstream.times("one")).toBe(1);
  });

  it("moderates the request or what was made of it", async () => {
    const { provider } = await started(bfl);
    for (const prompt of ["forbidden", "forbidden picture"])
      expect(await refusal(finished(provider, jobOf(bfl, prompt)))).toMatchObject({ kind: "moderation" });
  });

  it("is asked again when it says a word that nobody knows", async () => {
    const { provider } = await started(bfl);
    const { outcome, message } = await outcomeOf(finished(provider, jobOf(bfl, "odd")));
    expect({ outcome, message }).toEqual({
      outcome: "unknown",
      message: expect.stringContaining("Transmogrified"),
    });
  });
});
