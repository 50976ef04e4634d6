import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { LocalInputs } from "../../src/manifest/local-inputs.js";
import { openManifest } from "../../src/manifest/read.js";
import { onlyRowsAreWrong, wrongParts } from "../../src/plan/plan.js";
import { media } from "../archive/media.js";
import { fileWith, folderWith } from "../manifest/folder.js";
import { models, plan, planOf } from "./account.js";

const problemsOf = async (text: string) => (await planOf(text)).problems;

describe("a row is checked against the live models", () => {
  test("an unknown model is reported with the nearest one", async () => {
    expect(await problemsOf("id,model,prompt\na,paitn,x\n")).toEqual([
      {
        place: { file: expect.any(String), row: 2, id: "a", column: "model" },
        message: 'unknown model "paitn"',
        expected: "one of: paint, edit, animate, extend",
        got: "paitn",
        nearest: "paint",
      },
    ]);
  });

  test("a header of params may have capitals and spaces, as the README says; the model's key is sent", async () => {
    for (const name of ["Params.Aspect Ratio", "params.ASPECT_RATIO", "PARAMS. Aspect-Ratio"]) {
      const { problems, items } = await planOf(`id,model,prompt,${name}\na,paint,x,16:9\n`);
      expect([problems, items[0]?.params]).toEqual([[], { aspect_ratio: "16:9" }]);
    }
    expect(await problemsOf("id,model,prompt,Params.Mood,params.mood\na,paint,x,1,2\n")).toMatchObject([
      { message: 'model paint has no parameter "Mood"', place: { column: "params.Mood" } },
    ]);
  });

  test("an address without https:// gets it, unless a file has that name", async () => {
    for (const value of ["www.example.com/a.png", "cdn.example.com/a.png"])
      expect(await problemsOf(`id,model,image_url\na,animate,${value}\n`)).toMatchObject([
        { message: "a web address without https://", nearest: `https://${value}` },
      ]);
  });

  test("a row without a model gets the advice to name one for all rows", async () => {
    expect(await problemsOf("id,prompt\na,x\n")).toMatchObject([
      {
        message: "the row names no model",
        expected: expect.stringContaining("or with --model"),
        got: "nothing",
      },
    ]);
  });

  test("a long list of models is not repeated in every problem", async () => {
    const many = Array.from(
      { length: 13 },
      (_, n) => ({ ...models[0], model_key: `m${n}` }) as (typeof models)[0],
    );
    const { problems } = await planOf("model,prompt\nx,y\n", { models: many });
    expect(problems[0]?.expected).toBe("a model key of the service");
  });

  test.each([
    ["paint", "", ["prompt"]],
    ["edit", "", ["prompt", "image_url"]],
    ["animate", "x", ["image_url"]],
    ["extend", "x", ["video_url"]],
  ])("%s needs what its input type requires", async (model, prompt, missing) => {
    const problems = await problemsOf(`id,model,prompt\na,${model},${prompt}\n`);
    expect(problems.map(({ place, got }) => [place.column, got])).toEqual(
      missing.map((field) => [field, "nothing"]),
    );
  });

  test("a parameter that is not on the list is reported with the nearest one", async () => {
    expect(await problemsOf("model,prompt,params.aspect_raito\npaint,x,1:1\n")).toMatchObject([
      {
        place: { column: "params.aspect_raito" },
        expected: "one of: aspect_ratio, mood",
        nearest: "aspect_ratio",
      },
    ]);
  });

  test("a value that is not among the options is reported with the list and the nearest one", async () => {
    expect(await problemsOf("model,prompt,params.aspect_ratio\npaint,x,16:09\n")).toMatchObject([
      {
        place: { column: "params.aspect_ratio" },
        expected: "one of: 1:1, 16:9",
        got: "16:09",
        nearest: "16:9",
      },
    ]);
  });

  test("an option's label leads to its value", async () => {
    expect(await problemsOf("model,prompt,params.aspect_ratio\npaint,x,landscape\n")).toMatchObject([
      { nearest: "16:9" },
    ]);
  });

  test("a parameter of another type than select is the service's to judge", async () => {
    expect(await problemsOf("model,prompt,params.mood\npaint,x,anything\n")).toEqual([]);
  });

  test("a model that came without its parameters is not checked for them", async () => {
    const { parameters: _, ...bare } = models[0] as (typeof models)[0];
    const { problems, items } = await planOf("model,prompt,params.x\npaint,x,y\n", { models: [bare] });
    expect(problems).toEqual([]);
    expect(items[0]?.params).toEqual({ x: "y" });
  });

  test("a parameter named like something every object has is unknown all the same", async () => {
    expect(await problemsOf("model,prompt,params.constructor,params.__proto__\npaint,x,1,2\n")).toMatchObject(
      [{ got: "constructor" }, { got: "__proto__" }],
    );
  });
});

describe("a media input", () => {
  test.each(["https://example.com/a.png", "http://127.0.0.1:8080/a.png"])("may be %s", async (url) => {
    expect(await problemsOf(`model,image_url\nanimate,${url}\n`)).toEqual([]);
  });

  test.each(["ftp://example.com/a.png", "file:///etc/passwd", "https://", "data:image/png;base64,AAAA"])(
    "may not be %s",
    async (url) => {
      expect(await problemsOf(`model,prompt,image_url\nanimate,x,"${url}"\n`)).toMatchObject([
        { place: { column: "image_url" }, expected: expect.stringContaining("https://…"), got: url },
      ]);
    },
  );

  test("may be a local path only where the service takes one", async () => {
    const folder = await folderWith({
      "job.csv": "model,image_url\nanimate,cup.png\nanimate,cpu.png\nanimate,job.csv\n",
      "cup.png": "",
    });
    await writeFile(join(folder, "cup.png"), await media.png());
    const path = join(folder, "job.csv");
    expect((await plan(await openManifest(path))).problems).toHaveLength(3);
    const { problems, items } = await plan(await openManifest(path), { localInputs: new LocalInputs(path) });
    expect(problems).toMatchObject([
      { place: { row: 3 }, got: "cpu.png", nearest: "cup.png" },
      { place: { row: 4 }, message: "the input file has the wrong content (no known media format)" },
    ]);
    expect(items).toMatchObject([{ inputs: { image_url: "cup.png" } }]);
  });

  test("that the model does not ask for is noted, once for all rows", async () => {
    const row = "paint,x,https://example.com/a.png\n";
    const { problems, notes } = await planOf(`model,prompt,video_url\n${row}${row}`);
    expect(problems).toEqual([]);
    expect(notes).toEqual(["model paint does not list video_url as an input; it is sent anyway (rows 2, 3)"]);
  });
});

test("no input type speaks of sound, so sound is noted for none", async () => {
  const { notes } = await planOf("model,prompt,audio_url\npaint,x,https://example.com/a.mp3\n");
  expect(notes).toEqual([]);
});

describe("names", () => {
  test.each([
    ["two rows with one output", "a,cups/x\nb,cups/x\n", "output"],
    ["outputs that differ in capitals only", "a,Cup\nb,cup\n", "output"],
    ["outputs that differ in the extension only", "a,cup.png\nb,cup.webp\n", "output"],
    ["an output that is another row's id", "a,\nb,a\n", "output"],
    ["ids that differ in capitals only", "Cup,\ncup,\n", "id"],
  ])("%s are a problem", async (_name, rows, column) => {
    const lines = rows.replaceAll(/^(.+)$/gm, "paint,x,$1");
    expect(await problemsOf(`model,prompt,id,output\n${lines}`)).toMatchObject([
      { place: { row: 3, column }, message: expect.stringContaining("rows 2 and 3") },
    ]);
  });

  test("a copy's id may not be another row's", async () => {
    expect(await problemsOf("model,prompt,id,repeat\npaint,x,cup,2\npaint,y,cup-2,1\n")).toMatchObject([
      { place: { row: 3, column: "id" }, got: "cup-2" },
    ]);
  });

  test("rows with one id are reported once, not a second time for their name", async () => {
    expect(await problemsOf("model,prompt,id\npaint,x,a\npaint,y,a\n")).toHaveLength(1);
  });

  test.each(["../x", "/x", "a/../../x", "C:\\x", "..\\x"])(
    "the output %s leads out and is a problem",
    async (output) => {
      expect(await problemsOf(`model,prompt,output\npaint,x,${output}\n`)).toMatchObject([{ got: output }]);
    },
  );

  test("a version number in an output is no extension", async () => {
    const { items } = await planOf("model,prompt,output\npaint,x,cup v1.5\npaint,y,jug.PNG\n");
    expect(items.map(({ name }) => name)).toEqual(["cup v1.5", "jug"]);
  });
});

describe("default params", () => {
  const json = (job: object) => fileWith("job.json", JSON.stringify(job));

  test("are left out for models that do not take them, and that is noted", async () => {
    const path = await json({
      defaults: { params: { aspect_ratio: "16:9" } },
      rows: [
        { model: "paint", prompt: "x" },
        { model: "edit", prompt: "x", image_url: "https://example.com/a.png" },
      ],
    });
    const { problems, items, notes } = await plan(await openManifest(path));
    expect(problems).toEqual([]);
    expect(items.map(({ params }) => params)).toEqual([{ aspect_ratio: "16:9" }, {}]);
    expect(notes).toEqual(["the default aspect_ratio is left out for edit, which does not accept it"]);
  });

  test("that no model takes are a problem", async () => {
    const path = await json({
      defaults: { params: { aspekt: "16:9", moood: "warm" } },
      rows: [{ model: "paint", prompt: "x" }],
    });
    expect((await plan(await openManifest(path))).problems).toMatchObject([
      { place: { row: 1, column: "params.aspekt" }, got: "aspekt" },
      { place: { row: 1, column: "params.moood" }, got: "moood" },
    ]);
  });
});

test("all problems are reported together: 200 wrong rows among 300, in the order of the sheet", async () => {
  const rows = Array.from({ length: 300 }, (_, n) => (n % 3 === 0 ? `r${n},paint,x` : `r${n},pant,x`));
  const { problems, items } = await planOf(`id,model,prompt\n${rows.join("\n")}\n`);
  const wrong = Array.from({ length: 300 }, (_, n) => n + 2).filter((row) => (row - 2) % 3 !== 0);
  expect(problems.map(({ place }) => place.row)).toEqual(wrong);
  expect(items).toHaveLength(100);
  expect(onlyRowsAreWrong(problems)).toBe(true);
});

test("the file's own problems and the models' stand together, each with its row", async () => {
  const { problems } = await planOf(
    "id,model,prompt,repeat\na,paint,x,none\nb,paint\nc,pant,x,1\nd,paint,,1\n",
  );
  expect(problems.map(({ place }) => [place.row, place.column])).toEqual([
    [2, "repeat"],
    [3, undefined],
    [4, "model"],
    [5, "prompt"],
  ]);
});

test("a file that is wrong as a whole cannot be run without its wrong rows", async () => {
  expect(onlyRowsAreWrong(await problemsOf('model,prompt\npaint,"x\n'))).toBe(false);
});

test("a problem in JSON names line and column of the very value", async () => {
  const path = await fileWith("job.json", '[\n {"model": "pant",\n  "prompt": "x"}]');
  expect((await plan(await openManifest(path))).problems).toMatchObject([
    { place: { row: 1, line: 2, lineColumn: 12 } },
  ]);
});

test("a column that is a parameter's name without its prefix is a warning", async () => {
  const { warnings } = await planOf("model,prompt,Aspect_Ratio\npaint,x,16:9\n");
  expect(warnings).toMatchObject([
    {
      kind: "unused_param_column",
      message: 'column "Aspect_Ratio" does nothing; did you mean "params.aspect_ratio"?',
    },
  ]);
});

test("rows with problems are counted once each, and by their files", () => {
  const problem = (file: string, row: number) => ({
    place: { file, row },
    message: "",
    expected: "",
    got: "",
  });
  const problems = [problem("a.csv", 2), problem("a.csv", 2), problem("a.csv", 3), problem("b.csv", 2)];
  expect([wrongParts(problems).rows, wrongParts([]).rows]).toEqual([3, 0]);
  expect(onlyRowsAreWrong([])).toBe(true);
});
