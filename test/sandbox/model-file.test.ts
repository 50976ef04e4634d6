import sharp from "sharp";
import { afterEach, describe, expect, it } from "vitest";
import { modelList } from "../../src/api/records.js";
import { readModelFile } from "../../src/sandbox/catalogue/model-file.js";
import { familiarParams } from "../../src/service/models/familiar-params.js";
import { Caller } from "./caller.js";
import { filmFacts } from "./film-facts.js";

const select = (key: string, values: string[], preset?: string) => ({
  key,
  label: key,
  type: "select",
  options: values.map((value) => ({ value, label: value.toUpperCase() })),
  ...(preset === undefined ? {} : { default: preset }),
});

/** A list as a real service might answer it. */
const list = {
  models: [
    {
      model_key: "flux-pro",
      model_name: "Flux Pro",
      category: "image",
      credits_cost: 7.25,
      input_type: "text",
      parameters: [
        select("image_size", ["portrait_4_3", "1024x512"]),
        select("format", ["jpg", "png"], "png"),
      ],
      beta: true,
    },
    { model_key: "retouch", category: "image", credits_cost: 0, input_type: "text+image" },
    { model_key: "enlarger", category: "image", credits_cost: 1, input_type: "image" },
    {
      model_key: "veo",
      model_name: "Veo",
      category: "video",
      credits_cost: 120,
      input_type: "text",
      parameters: [
        select("aspectRatio", ["16:9", "9:16"], "9:16"),
        select("duration", ["2s", "auto"]),
        { key: "seed", label: "Seed", type: "number", default: null },
      ],
    },
    { model_key: "tts-1", category: "audio", credits_cost: 2, input_type: "text", parameters: [] },
    {
      model_key: "song",
      category: "audio",
      credits_cost: 3,
      input_type: "text",
      parameters: [select("seconds", ["4"]), select("output_format", ["wav"])],
    },
    { model_key: "scorer", category: "audio", credits_cost: 3, input_type: "video" },
    { model_key: "still", category: "image", credits_cost: 3, input_type: "video" },
    { model_key: "mover", category: "video", credits_cost: 3, input_type: "image" },
  ],
};

let caller: Caller | undefined;
afterEach(() => caller?.sandbox.close());

async function play(): Promise<Caller> {
  // Pictures and films take a time to make that grows with their size.
  const models = readModelFile(JSON.stringify(list), "models.json");
  caller = await Caller.start({ models, plan: "Enterprise", credits: 1_000, mediaSide: 160 });
  return caller;
}

async function picture(seat: Caller, task: { output_urls: string[] }) {
  const { format, width = 0, height = 0 } = await sharp(await seat.download(task.output_urls[0]!)).metadata();
  return { format, ratio: width / height };
}

describe("a sandbox that plays a model file", () => {
  it("lists only the file's models, with the same keys, prices, inputs and parameters", async () => {
    const answer = modelList.parse((await (await play()).get("/api/v1/models")).body);
    expect(answer.total).toBe(list.models.length);
    expect(answer.models[0]).toMatchObject({
      model_key: "flux-pro",
      model_name: "Flux Pro",
      category: "image",
      credits_cost: 7.25,
      input_type: "text",
    });
    expect(answer.models[0]?.parameters?.[1]).toEqual(select("format", ["jpg", "png"], "png"));
    expect(answer.models[1]?.model_name).toBe("retouch");
    expect(answer.models[3]?.parameters?.[2]).toMatchObject({ key: "seed", type: "number" });
    expect(answer.categories["audio"]).toEqual(["tts-1", "song", "scorer"]);
  });

  it("charges the listed price, and asks for the listed inputs and options", async () => {
    const seat = await play();
    const created = await seat.generate({ model: "flux-pro", prompt: "A heron" });
    expect([created.body.credits_consumed, created.body.credits_remaining]).toEqual([7.25, 992.75]);
    for (const body of [
      { model: "retouch", prompt: "warmer" },
      { model: "flux-pro", prompt: "A heron", params: { format: "webp" } },
      { model: "flux-pro", prompt: "A heron", params: { duration: "2s" } },
      { model: "veo", prompt: "A heron", params: { seed: { from: 1 } } },
    ]) {
      expect((await seat.generate(body)).body.error.code).toBe("INVALID_REQUEST");
    }
    const odd = { model: "veo", prompt: "A heron", params: { seed: { from: 1 } } };
    expect((await seat.generate(odd)).body.error.message).toBe('seed is {"from":1}, but must be a string.');
    expect((await seat.generate({ model: "aurora-image", prompt: "A heron" })).body.error.code).toBe(
      "INVALID_MODEL",
    );
  });

  it("makes pictures in the shape and format that foreign parameters ask for", async () => {
    const seat = await play();
    const upright = await seat.finish({ model: "flux-pro", prompt: "A heron" });
    expect(upright.input).toEqual({ prompt: "A heron", image_size: "portrait_4_3", format: "png" });
    expect(await picture(seat, upright)).toEqual({ format: "png", ratio: expect.closeTo(0.75, 2) });
    const params = { image_size: "1024x512", format: "jpg" };
    const wide = await seat.finish({ model: "flux-pro", prompt: "A heron", params });
    expect(await picture(seat, wide)).toEqual({ format: "jpeg", ratio: 2 });
  });

  it("makes films of the requested length, of a default length if there is none, and accepts the values of any list", async () => {
    const seat = await play();
    const made = await seat.finish({ model: "veo", prompt: "Waves", params: { seed: 7 } });
    expect(made.input).toMatchObject({ aspectRatio: "9:16", duration: "2s", seed: "7" });
    const film = await filmFacts(await seat.download(made.output_urls[0]));
    expect(film.seconds).toBeCloseTo(2, 1);
    expect(film.height).toBeGreaterThan(film.width);
    const auto = await seat.finish({ model: "veo", prompt: "Waves", params: { duration: "auto" } });
    expect((await filmFacts(await seat.download(auto.output_urls[0]))).seconds).toBeCloseTo(4, 1);
  });

  it("speaks with a model for voices and plays with one for songs", async () => {
    const seat = await play();
    const song = await seat.finish({ model: "song", prompt: "Slow strings" });
    const wav = await seat.download(song.output_urls[0]);
    // 16 bits at 32,000 a second: four seconds of music, whatever the prompt says.
    expect(wav.length / 64_000).toBeCloseTo(4, 1);
    const said = await seat.finish({ model: "tts-1", prompt: "Good evening" });
    expect(said.output_urls[0]).toContain(".mp3?");
    expect((await seat.download(said.output_urls[0])).length).toBeGreaterThan(2_000);
  });

  it("takes the outputs of one model as inputs of another, in every category", async () => {
    const seat = await play();
    const image = (await seat.finish({ model: "flux-pro", prompt: "A heron" })).output_urls[0];
    const film = (await seat.finish({ model: "veo", prompt: "Waves" })).output_urls[0];
    for (const body of [
      { model: "retouch", prompt: "warmer", image_url: image },
      { model: "enlarger", image_url: image },
      { model: "mover", image_url: image },
      { model: "scorer", video_url: film },
      { model: "still", video_url: film },
    ]) {
      expect([body.model, (await seat.finish(body)).error]).toEqual([body.model, null]);
    }
  });
});

describe("a model file that cannot be played", () => {
  const broken = (change: object, index = 0) => ({
    models: list.models.map((model, place) => (place === index ? { ...model, ...change } : model)),
  });

  it.each<[unknown, string, string]>([
    [{ models: {} }, "expected array", "models"],
    [{ models: [] }, "expected array to have >=1 items", "models"],
    [{ models: ["flux"] }, "expected object", "models[0]"],
    [broken({ model_key: "" }), "expected string to have >=1 characters", "models[0].model_key"],
    [broken({ model_key: "veo" }), "expected a key that no other model has", "models[3].model_key"],
    [broken({ category: "3d" }), 'expected one of "image"|"video"|"audio"', "models[0].category"],
    [broken({ credits_cost: -1 }, 1), "expected number to be >=0", "models[1].credits_cost"],
    [broken({ input_type: undefined }), "expected one of", "models[0].input_type"],
    [
      broken({ parameters: [select("size", [])] }),
      "expected one {value, label} or more",
      "models[0].parameters[0].options",
    ],
    [
      broken({ parameters: [select("size", ["a", "b"], "c")] }),
      "expected one of its options a, b",
      "models[0].parameters[0].default",
    ],
    [
      broken({ parameters: [{ ...select("size", []), options: [{ value: 3 }] }] }),
      "expected string, received number",
      "models[0].parameters[0].options[0].value",
    ],
  ])("is refused with what was expected, and where (%#)", (document, expected, where) => {
    const reading = () => readModelFile(JSON.stringify(document), "m.json");
    expect(reading).toThrow("m.json is not a list of models:");
    expect(reading).toThrow(expected);
    expect(reading).toThrow(`→ at ${where}`);
  });

  it("is refused with all its problems in one message", () => {
    const document = { models: [{ ...list.models[0], category: "3d", credits_cost: null }, {}] };
    const messages = () => readModelFile(JSON.stringify(document), "m.json");
    expect(messages).toThrow(
      /category[\s\S]*credits_cost[\s\S]*models\[1\]\.model_key[\s\S]*models\[1\]\.input_type/,
    );
  });

  it("is refused when it is no JSON", () => {
    expect(() => readModelFile("models:", "m.yaml")).toThrow(/^m\.yaml is not JSON: .+/);
  });
});

describe("foreign params", () => {
  it.each<[Record<string, string>, Record<string, string>]>([
    [{ aspect_ratio: "21:9" }, { aspect_ratio: "21:9" }],
    [{ aspect_ratio: "auto" }, {}],
    [
      { aspect_ratio: "auto", size: "512x512" },
      { aspect_ratio: "512:512", size: "512x512" },
    ],
    [{ resolution: "1x4000" }, { aspect_ratio: "1:4", resolution: "1x4000" }],
    [{ ratio: "0:0" }, { ratio: "0:0" }],
    [{ image_size: "square_hd" }, { aspect_ratio: "1:1", image_size: "square_hd" }],
    [{ duration: "5" }, { duration: "5" }],
    [{ duration: "7.6 seconds" }, { duration: "8" }],
    [{ duration: "1m" }, { duration: "30" }],
    [{ duration: "0" }, { duration: "1" }],
    [{ duration: "long" }, {}],
    [{ seconds: "6" }, { duration: "6", seconds: "6" }],
    [{ output_format: "image/JPG" }, { output_format: "jpeg" }],
    [{ output_format: "avif" }, {}],
    [
      { size: "large", style: "dusk", prompt: "16:9" },
      { size: "large", style: "dusk", prompt: "16:9" },
    ],
  ])("%j mean to our makers %j", (given, understood) => {
    expect(familiarParams(given)).toEqual(understood);
  });
});
