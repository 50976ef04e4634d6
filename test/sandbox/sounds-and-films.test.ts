import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as records from "../../src/api/records.js";
import { readSound } from "../../src/sandbox/studio/sound.js";
import { Caller } from "./caller.js";
import { filmFacts } from "./film-facts.js";

/** In pixels: encoding takes a time that grows with the size. */
const mediaSide = 160;

let caller: Caller;
beforeAll(async () => {
  caller = await Caller.start({ plan: "Enterprise", credits: 10_000, mediaSide });
});
afterAll(() => caller.sandbox.close());

/** The first output of a request, and its URL. */
async function made(body: unknown): Promise<{ url: string; bytes: Buffer }> {
  const task = await caller.finish(body);
  expect(task).toMatchObject({ status: "completed", error: null });
  return { url: task.output_urls[0], bytes: await caller.download(task.output_urls[0]) };
}

describe("the catalogue", () => {
  it("has at least eight models, all categories and all input types, and only defaults that are on their lists", async () => {
    const { models } = records.modelList.parse((await caller.get("/api/v1/models")).body);
    expect(models.length).toBeGreaterThanOrEqual(8);
    expect(new Set(models.map((model) => model.category))).toEqual(new Set(records.categories));
    expect(new Set(models.map((model) => model.input_type))).toEqual(
      new Set(["text", "image", "video", "text+image"]),
    );
    for (const parameter of models.flatMap((model) => model.parameters ?? [])) {
      expect(parameter.options?.map((option) => option.value)).toContain(parameter.default);
    }
  });
});

describe("a voice", () => {
  const speak = (prompt: string, params: Record<string, string> = {}) =>
    made({ model: "voice-clear", prompt, params });

  it("reads the prompt, longer prompts for longer", async () => {
    const short = await filmFacts((await speak("Hello.")).bytes);
    const long = await filmFacts(
      (await speak("Hello, and welcome to our little garden café by the sea.")).bytes,
    );
    expect([short.audio, short.video]).toEqual(["mp3", null]);
    expect(long.seconds).toBeGreaterThan(short.seconds + 1);
  });

  it("sounds other for another voice and slower when asked, and the same for the same request", async () => {
    const wav = { output_format: "wav" };
    const clara = (await speak("One two three", wav)).bytes;
    expect((await speak("One two three", wav)).bytes.equals(clara)).toBe(true);
    expect((await speak("One two three", { ...wav, voice: "ruben" })).bytes.equals(clara)).toBe(false);
    const slow = (await speak("One two three", { ...wav, speed: "slow" })).bytes;
    expect((await filmFacts(slow)).seconds).toBeGreaterThan((await filmFacts(clara)).seconds * 1.1);
    const sound = await readSound(clara);
    expect(Math.max(...(sound?.samples ?? []))).toBeGreaterThan(0.1);
  });

  it("says so aloud when it cannot read the script", async () => {
    expect((await filmFacts((await speak("日本語")).bytes)).seconds).toBeGreaterThan(1);
  });
});

describe("music", () => {
  it.each([
    ["mp3", "mp3"],
    ["wav", "pcm-s16"],
  ])("lasts as long as was asked, as %s", async (output_format, codec) => {
    const { bytes } = await made({
      model: "score-music",
      prompt: "Sea",
      params: { duration: "5", output_format },
    });
    const facts = await filmFacts(bytes);
    expect(facts.audio).toBe(codec);
    expect(facts.seconds).toBeCloseTo(5, 0);
  });
});

describe("a film", () => {
  let film: { url: string; bytes: Buffer };
  let picture: { url: string };
  beforeAll(async () => {
    const params = { duration: "2", aspect_ratio: "9:16", sound: "music" };
    film = await made({ model: "reel-text", prompt: "A fox in the snow", params });
    picture = await made({ model: "aurora-image-mini", prompt: "A fox", params: { aspect_ratio: "3:2" } });
  });

  it("of a text has the ratio, duration and sound that were asked for", async () => {
    const facts = await filmFacts(film.bytes);
    expect(facts).toMatchObject({ video: "avc", audio: "mp3", width: 90, height: 160 });
    expect(facts.pictures.length).toBe(24);
    expect(facts.seconds).toBeCloseTo(2, 0);
  });

  it("is another one when it is asked for again", async () => {
    const params = { duration: "2" };
    const first = await made({ model: "reel-image", image_url: picture.url, params });
    const second = await made({ model: "reel-image", image_url: picture.url, params });
    expect(second.bytes.equals(first.bytes)).toBe(false);
  });

  it("of a picture has even sides in the picture's ratio", async () => {
    const body = { model: "reel-direct", prompt: "Run", image_url: picture.url, params: { duration: "2" } };
    const facts = await filmFacts((await made(body)).bytes);
    expect([facts.width, facts.height, facts.audio]).toEqual([160, 106, null]);
  });

  it("that is extended keeps its own frames untouched and gets new ones", async () => {
    const longer = await made({ model: "reel-extend", video_url: film.url, params: { duration: "2" } });
    const before = await filmFacts(film.bytes);
    const after = await filmFacts(longer.bytes);
    expect(after.pictures.length).toBe(before.pictures.length + 24);
    const kept = after.pictures.slice(0, before.pictures.length);
    expect(
      kept.every((packet, at) => Buffer.compare(packet.data, before.pictures[at]?.data ?? Buffer.of()) === 0),
    ).toBe(true);
    expect(after.seconds).toBeCloseTo(4, 0);
    expect(after.audio).toBe("mp3");
  });

  it("can be extended twice", async () => {
    const once = await made({ model: "reel-extend", video_url: film.url, params: { duration: "2" } });
    const twice = await made({ model: "reel-extend", video_url: once.url, params: { duration: "2" } });
    expect((await filmFacts(twice.bytes)).pictures.length).toBe(72);
  });

  it("of a performance lasts as long as the sound it was given", async () => {
    const voice = await made({
      model: "voice-clear",
      prompt: "A short hello.",
      params: { output_format: "wav" },
    });
    const body = { model: "reel-perform", image_url: picture.url, audio_url: voice.url };
    const facts = await filmFacts((await made(body)).bytes);
    expect(facts.audio).toBe("mp3");
    expect(facts.seconds).toBeCloseTo((await filmFacts(voice.bytes)).seconds, 0);
  });

  it("cannot be made of a picture where a video is needed", async () => {
    const task = await caller.finish({ model: "reel-extend", video_url: picture.url });
    expect(task).toMatchObject({ status: "failed", credits_consumed: 0 });
    expect(task.error).toContain("image/png, not video");
  });
});
