import { describe, expect, test } from "vitest";
import type { Model } from "../../src/api/records.js";
import type { LocalInput } from "../../src/manifest/local-inputs.js";
import { openManifest } from "../../src/manifest/read.js";
import { isOption, noModel, parameterOf, Said, unknownParam, wrongValue } from "../../src/plan/check-row.js";
import type { PlanInput } from "../../src/plan/plan.js";
import { fileWith } from "../manifest/folder.js";
import { models, plan, planOf } from "./account.js";

const [paint] = models as [Model];

describe("a media input", () => {
  /** The problems of an input that is written so, with local files that were read. */
  async function problemOf(field: string, model: string, value: string, files?: Record<string, LocalInput>) {
    const found = new Map(Object.entries(files ?? {}));
    const localInputs: PlanInput["localInputs"] = { found, read: async () => {} };
    const { problems } = await planOf(
      `model,prompt,${field}\n${model},x,${value}\n`,
      files === undefined ? {} : { localInputs },
    );
    return problems.map(({ message, expected, got, nearest }) => ({ message, expected, got, nearest }));
  }
  const file = (mime: string | null) => ({ path: "/job/x", sha256: "sha256:aa", bytes: 9, mime });

  test.each(["https://", "ftp://example.com/a.png", "https://exa mple.com/a.png", "data:image/png"])(
    "that is %s is no usable web address",
    async (value) => {
      expect(await problemOf("image_url", "animate", value)).toEqual([
        { message: "not a usable web address", expected: "https://…", got: value, nearest: undefined },
      ]);
    },
  );

  test.each(["C:\\Users\\Anna\\cup.png", "d:/cup.png", "file:///home/anna/cup.png"])(
    "%s is a path on a computer, which only this computer knows",
    async (value) => {
      expect(await problemOf("image_url", "animate", value)).toEqual([
        {
          message: "a path outside the manifest's folder",
          expected: "the path of a file in the manifest's folder, such as pictures/cup.png, or https://…",
          got: value,
          nearest: undefined,
        },
      ]);
    },
  );

  test.each(["; ", ";", " ", "|"])("two addresses with %j between them are not one", async (between) => {
    const value = `https://example.com/a.png${between}https://example.com/b.png`;
    expect(await problemOf("image_url", "animate", value)).toMatchObject([
      { message: "several addresses in one cell", expected: "one address" },
    ]);
    const one = "https://example.com/a.png?from=https://example.com/b.png";
    expect(await problemOf("image_url", "animate", one)).toEqual([]);
  });

  test.each(["www.example.com", "example.com/a.png", "cdn-1.example.co.uk/a.png", "WWW.Example.com/a"])(
    "%s is an address without its beginning",
    async (value) => {
      expect(await problemOf("image_url", "animate", value)).toEqual([
        {
          message: "a web address without https://",
          expected: "https://…",
          got: value,
          nearest: `https://${value}`,
        },
      ]);
    },
  );

  test.each(["cup.png", "pictures/cup.png", "a.b/c", "./example.com/a.png", "pictures/www.png"])(
    "%s is a local path, which the service cannot read by itself",
    async (value) => {
      expect(await problemOf("image_url", "animate", value)).toEqual([
        {
          message: "the service cannot read a local path",
          expected: "https://…, or --publish with a place where the service can read local files",
          got: value,
          nearest: undefined,
        },
      ]);
    },
  );

  test("may be a file that has the name of an address", async () => {
    const value = "example.com/a.png";
    expect(await problemOf("image_url", "animate", value, { [value]: file("image/png") })).toEqual([]);
    const wrong = { wrong: "there is no such file", expected: "a file" };
    expect(await problemOf("image_url", "animate", value, { [value]: wrong })).toMatchObject([
      { message: "a web address without https://" },
    ]);
  });

  test.each([
    ["image_url", "animate", "image/webp", []],
    ["image_url", "animate", "video/mp4", ["an image file"]],
    ["image_url", "animate", "imagery/png", ["an image file"]],
    ["video_url", "extend", "video/mp4", []],
    ["video_url", "extend", "audio/mpeg", ["a video file"]],
    ["audio_url", "paint", "audio/mpeg", []],
    ["audio_url", "paint", "video/mp4", []],
    ["audio_url", "paint", "image/png", ["an audio file"]],
    ["image_url", "animate", null, ["an image file"]],
  ] as const)("as a file for %s of %s may hold %s, or is wrong", async (field, model, mime, wanted) => {
    const content = mime ?? "no known media format";
    expect(await problemOf(field, model, "cup.x", { "cup.x": file(mime) })).toEqual(
      wanted.map((expected) => ({
        message: `the input file has the wrong content (${content})`,
        expected,
        got: "cup.x",
        nearest: undefined,
      })),
    );
  });

  test("that cannot be used says why, with the nearest file if there is one", async () => {
    const near = { wrong: "there is no such file", expected: "a file in the folder", nearest: "cup.png" };
    expect(await problemOf("image_url", "animate", "cpu.png", { "cpu.png": near })).toEqual([
      {
        message: "the input file cannot be used: there is no such file",
        expected: "a file in the folder",
        got: "cpu.png",
        nearest: "cup.png",
      },
    ]);
    expect(await problemOf("image_url", "animate", "cpu.png", {})).toMatchObject([
      { message: "the input file cannot be used: it was not read", expected: "a file" },
    ]);
  });

  test("that begins like a reference and is none says how one is written", async () => {
    expect(await problemOf("image_url", "animate", "@cup[x]")).toEqual([
      {
        message: "not a usable reference to another item",
        expected: "@ITEM, @STEP or @ROW.STEP, followed by [2] for the second output",
        got: "@cup[x]",
        nearest: undefined,
      },
    ]);
  });
});

test("a row that names no model and has a wrong input has both problems", async () => {
  const { problems } = await planOf("model,prompt,image_url\nnobody,x,ftp://a/b\n");
  expect(problems.map(({ message }) => message)).toEqual([
    'unknown model "nobody"',
    "not a usable web address",
  ]);
});

test("a row whose model needs more than it has is told what, and why", async () => {
  const { problems } = await planOf("model,prompt\nedit, \n");
  expect(problems.map(({ message, expected, got }) => [message, expected, got])).toEqual([
    ["model edit needs prompt", "prompt, because the model's input is text+image", "nothing"],
    ["model edit needs image_url", "image_url, because the model's input is text+image", "nothing"],
  ]);
});

test("a prompt of nothing but spaces is none", async () => {
  const file = await fileWith("job.json", JSON.stringify({ rows: [{ model: "paint", prompt: "  " }] }));
  const { problems } = await plan(await openManifest(file));
  expect(problems).toMatchObject([{ message: "model paint needs prompt" }]);
});

test("a row with mistakes of every kind is told all of them", async () => {
  const { problems } = await planOf(
    "model,prompt,image_url,params.size,params.aspect_ratio\nedit,,ftp://a/b,2k,\npaint,x,ftp://a/b,2k,4:3\n",
  );
  expect(problems.map(({ place, message }) => [place.row, place.column, message])).toEqual([
    [2, "prompt", "model edit needs prompt"],
    [2, "image_url", "not a usable web address"],
    [2, "params.size", 'model edit has no parameter "size"'],
    [3, "image_url", "not a usable web address"],
    [3, "params.size", 'model paint has no parameter "size"'],
    [3, "params.aspect_ratio", 'parameter aspect_ratio has no option "4:3"'],
  ]);
});

test("rows that name different models that do not exist are told each its own", async () => {
  const { problems } = await planOf("model,prompt\nnobody,x\nnoone,x\nnobody,y\n");
  expect(problems.map(({ place, message }) => [place.column, message])).toEqual([
    ["model", 'unknown model "nobody"'],
    ["model", 'unknown model "noone"'],
    ["model", 'unknown model "nobody"'],
  ]);
});

test("params of a model that came without its list of parameters are sent as they are", async () => {
  const { parameters: _, ...bare } = paint;
  const job = {
    defaults: { model: "paint", params: { mood: "warm" } },
    rows: [{ prompt: "x", params: { Size: "2k" } }],
  };
  const file = await fileWith("job.json", JSON.stringify(job));
  const { items, problems, notes } = await plan(await openManifest(file), { models: [bare] });
  expect([problems, notes]).toEqual([[], []]);
  expect(items.map(({ params }) => params)).toEqual([{ mood: "warm", Size: "2k" }]);
});

describe("what is said of a wrong name", () => {
  const byKey = new Map(models.map((model) => [model.model_key, model]));

  test("of a model: those that there are, and the nearest", () => {
    expect(noModel("extent", byKey)).toEqual({
      message: 'unknown model "extent"',
      expected: "one of: paint, edit, animate, extend",
      got: "extent",
      nearest: "extend",
    });
    expect(noModel("zzz", byKey)).not.toHaveProperty("nearest");
    expect(noModel("", byKey)).toEqual({
      message: "the row names no model",
      expected: "one of: paint, edit, animate, extend (as the row's model, or with --model)",
      got: "nothing",
    });
    expect(noModel("x", new Map())).toMatchObject({ expected: "a model key of the service" });
    const twelve = new Map(Array.from({ length: 12 }, (_, n) => [`m${n}`, paint]));
    expect(noModel("x", twelve).expected).toMatch(/^one of: m0, .* m11$/);
    expect(noModel("x", new Map([...twelve, ["m12", paint]])).expected).toBe("a model key of the service");
  });

  test("of a parameter: those that the model has, and the nearest", () => {
    expect(unknownParam(paint, "moods")).toEqual({
      message: 'model paint has no parameter "moods"',
      expected: "one of: aspect_ratio, mood",
      got: "moods",
      nearest: "mood",
    });
    expect(unknownParam({ ...paint, parameters: [] }, "mood")).toEqual({
      message: 'model paint has no parameter "mood"',
      expected: "no parameters",
      got: "mood",
    });
    const { parameters: _, ...bare } = paint;
    expect(unknownParam(bare, "mood").expected).toBe("no parameters");
  });

  const ratio = parameterOf(paint, "aspect_ratio", {}) as NonNullable<ReturnType<typeof parameterOf>>;

  test("of a value: the options, with the one of that label or the nearest", () => {
    expect(wrongValue(ratio, "SQUARE")).toEqual({
      message: 'parameter aspect_ratio has no option "SQUARE"',
      expected: "one of: 1:1, 16:9",
      got: "SQUARE",
      nearest: "1:1",
    });
    expect(wrongValue(ratio, "16:8")).toMatchObject({ nearest: "16:9" });
    expect(wrongValue(ratio, "panorama")).not.toHaveProperty("nearest");
    expect(wrongValue({ key: "x" } as typeof ratio, "y")).toMatchObject({ expected: "one of: " });
  });

  test("is said once for all rows that share the mistake", () => {
    const said = new Said();
    let times = 0;
    const words = () => ({ message: `${times++}`, expected: "", got: "" });
    expect(said.of(["a", "b"], words)).toBe(said.of(["a", "b"], words));
    said.of(["a"], words);
    said.of(["ab"], words);
    expect(times).toBe(3);
  });

  test("may be any number of things, of which the first thousand are remembered", () => {
    const said = new Said();
    let times = 0;
    const words = () => ({ message: `${times++}`, expected: "", got: "" });
    for (let number = 0; number < 1_001; number++) said.of([`${number}`], words);
    said.of(["0"], words);
    said.of(["999"], words);
    said.of(["1000"], words);
    expect(times).toBe(1_002);
  });

  test("an option is a value of the list, and anything where there is none", () => {
    expect([isOption(ratio, "16:9"), isOption(ratio, "Square")]).toEqual([true, false]);
    expect(isOption({ key: "x" } as typeof ratio, "y")).toBe(true);
  });
});

describe("the parameter of a column", () => {
  const model: Model = {
    ...paint,
    parameters: ["Size", "size", "Frame Rate"].map((key) => ({ key, label: key, type: "text" })),
  };
  const keyOf = (key: string, ...others: string[]) =>
    parameterOf(model, key, Object.fromEntries([key, ...others].map((name) => [name, "x"])))?.key;

  test("is that of the very key, else the only one that differs in capitals and spaces alone", () => {
    expect([keyOf("Size"), keyOf("size")]).toEqual(["Size", "size"]);
    expect(keyOf("SIZE")).toBeUndefined();
    expect(keyOf("frame_rate")).toBe("Frame Rate");
    expect(keyOf("FRAME-RATE")).toBe("Frame Rate");
    expect(keyOf("framerate")).toBeUndefined();
  });

  test("is none where two columns mean it", () => {
    expect(keyOf("frame_rate", "Frame-Rate")).toBeUndefined();
  });
});

describe("the params that are sent", () => {
  const rows = (columns: string, ...values: string[]) =>
    `id,model,prompt,${columns}\n${values.map((value, n) => `r${n},paint,x,${value}`).join("\n")}\n`;
  const sent = async (text: string, repair = false) => {
    const { items, problems, notes } = await planOf(text, { repair });
    return { params: items.map(({ params }) => params), wrong: problems.map(({ got }) => got), notes };
  };

  test("are those of the row by the keys of the model, in whatever form their columns are written", async () => {
    expect(await sent(rows("params.MOOD,params.Aspect Ratio", "warm,16:9", "cold,"))).toEqual({
      params: [{ mood: "warm", aspect_ratio: "16:9" }, { mood: "cold" }],
      wrong: [],
      notes: [],
    });
  });

  test("have the option that a spreadsheet had changed, beside those that it had not", async () => {
    expect(await sent(rows("params.aspect_ratio,params.mood", "16:09,warm", "16:9,cold"), true)).toEqual({
      params: [
        { aspect_ratio: "16:9", mood: "warm" },
        { aspect_ratio: "16:9", mood: "cold" },
      ],
      wrong: [],
      notes: ['params.aspect_ratio: "16:09" was read as "16:9" (row 2)'],
    });
  });

  test("are told one by one where they are wrong, each with what is wrong of it", async () => {
    const { problems } = await planOf(rows("params.aspect_ratio,params.size", "4:3,2k"));
    expect(problems.map(({ place, message }) => [place.column, message])).toEqual([
      ["params.aspect_ratio", 'parameter aspect_ratio has no option "4:3"'],
      ["params.size", 'model paint has no parameter "size"'],
    ]);
    const [first, second] = (await planOf(rows("params.size,params.form", "2k,x"))).problems;
    expect([first?.got, second?.got]).toEqual(["size", "form"]);
  });

  test("are not changed without being asked for", async () => {
    expect((await sent(rows("params.aspect_ratio", "16:09"))).wrong).toEqual(["16:09"]);
  });
});

test("a local file counts by its content in the item's key, and each input by its own", async () => {
  const found = new Map<string, LocalInput>(
    ["a", "b"].map((name) => [
      `${name}.png`,
      { path: `/job/${name}.png`, sha256: `sha256:${name}`, bytes: 9, mime: "image/png" },
    ]),
  );
  const localInputs: PlanInput["localInputs"] = { found, read: async () => {} };
  const { items } = await planOf(
    "model,prompt,image_url\nedit,x,a.png\nedit,x,b.png\nedit,x,https://example.com/a.png\n",
    { localInputs },
  );
  expect(new Set(items.map(({ key }) => key)).size).toBe(3);
  expect(items.map(({ occurrence }) => occurrence)).toEqual([1, 1, 1]);
});
