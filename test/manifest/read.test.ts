import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fileWith, folderWith } from "./folder.js";
import { readManifest } from "./read.js";

const sheet = async (text: string | Uint8Array) => readManifest(await fileWith("sheet.csv", text));

test("a row is read with all that it says", async () => {
  const manifest = await sheet(
    "id,model,prompt,image_url,output,repeat,priority,params.style,season\n" +
      ' a , m ," a cup ", https://example.com/a.png ,cups/a, 2 ,-3, poster ,autumn\n',
  );
  expect(manifest).toMatchObject({ name: "sheet", problems: [] });
  expect(manifest.rows).toMatchObject([
    {
      number: 2,
      place: { file: manifest.file, row: 2, id: "a" },
      id: "a",
      model: "m",
      prompt: " a cup ",
      params: { style: "poster" },
      inputs: { image_url: "https://example.com/a.png" },
      output: "cups/a",
      repeat: 2,
      priority: -3,
      columns: { season: "autumn" },
    },
  ]);
});

test("a row that says nothing has no id, no prompt, no output, one copy and priority 0", async () => {
  const { rows } = await sheet("id,model,prompt,output,repeat,priority,x,y\n,,,,,,one,two\n");
  expect(rows).toMatchObject([
    { id: null, model: "", prompt: null, output: null, params: {}, inputs: {}, repeat: 1, priority: 0 },
  ]);
});

test("a byte order mark is no text of the first column's name", async () => {
  expect((await sheet("\uFEFFid,prompt\na,x\n")).rows).toMatchObject([{ id: "a" }]);
});

test("columns that nothing uses share one note, and a word of another language is no slip", async () => {
  const { notes } = await sheet("id,prompt,Produkt,Preis,Notiz,a,b,c,e\ni,x,1,2,3,4,5,6,7\n");
  expect(notes).toEqual([
    'columns "Produkt", "Preis", "Notiz", "a", "b" and 2 more are not used (they are kept for the export)',
  ]);
});

test("a field without invisible characters around it is the same", async () => {
  const { rows } = await sheet("id,model,prompt,params.style\na\u200b,\u2060m,x,\u00a0poster\u200b\n");
  expect(rows).toMatchObject([{ id: "a", model: "m", prompt: "x", params: { style: "poster" } }]);
});

test("a column that nothing uses is noted, with the nearest known name", async () => {
  const { notes, unusedColumns } = await sheet("id,promt,season,param.style\ni,x,y,z\n");
  expect(unusedColumns).toEqual(["promt", "season", "param.style"]);
  expect(notes).toEqual([
    'column "promt" is not used; did you mean "prompt"?',
    'column "param.style" is not used; did you mean "params.style"?',
    'column "season" is not used (it is kept for the export)',
  ]);
});

test("a row cannot ask for approval, which a note says", async () => {
  expect((await sheet("id,prompt,Approve\na,x,true\n")).notes).toEqual([
    expect.stringMatching(
      /^column "Approve" is not used: nothing waits for approval .* a job file asks for it/,
    ),
  ]);
});

test("a note says what rows without ids are called, if a column of the sheet may name them", async () => {
  const note = expect.stringContaining("no column is named id");
  expect((await sheet("Artikelnr.,prompt\n4711,x\n")).notes).toEqual([
    expect.stringContaining("Artikelnr."),
    note,
  ]);
  expect((await sheet("Product,prompt\nCup,a {{ product }}\n")).notes).toEqual([note]);
  expect((await sheet("model,prompt\nm,x\n")).notes).toEqual([]);
});

test("a template has to say which of two columns of one name it means", async () => {
  const path = await fileWith("sheet.csv", "id,Notes,Notes\na,one,two\n");
  const made = (prompt: string) => readManifest(path, { defaults: { prompt } });
  expect((await made("{{ notes_2 }}")).rows).toMatchObject([{ prompt: "two" }]);
  expect((await made("{{ Notes }}")).problems).toMatchObject([
    { place: { column: "prompt" }, got: "Notes", nearest: "notes_1" },
  ]);
});

describe("defaults", () => {
  const defaults = { model: "flag", prompt: "flag", params: { style: "flag", mood: "flag" } };

  test("the row comes before the manifest's defaults, and those before the command line's", async () => {
    const job = { defaults: { model: "job", params: { style: "job" } }, rows: [{ model: "row" }, {}] };
    const { rows } = await readManifest(await fileWith("job.json", JSON.stringify(job)), { defaults });
    expect(rows).toMatchObject([
      { model: "row", prompt: "flag", params: { style: "job", mood: "flag" } },
      { model: "job", prompt: "flag", params: { style: "job", mood: "flag" } },
    ]);
  });

  test("an empty cell takes the default, and the row knows which params are not its own", async () => {
    const path = await fileWith("sheet.csv", "id,params.style\na,\nb,own\n");
    const { rows } = await readManifest(path, { defaults });
    expect(rows).toMatchObject([
      { params: { style: "flag" }, defaultParams: ["style", "mood"] },
      { params: { style: "own" }, defaultParams: ["mood"] },
    ]);
  });
});

describe("a JSON job with its rows in a sheet", () => {
  test("reads them from beside the job, with the sheet's own places", async () => {
    const folder = await folderWith({
      "job.json": '{"name": "cups", "defaults": {"model": "m"}, "rows": "rows/sheet.csv"}',
      "rows/sheet.csv": "id,repeat\na,none\n",
    });
    const manifest = await readManifest(join(folder, "job.json"));
    expect(manifest).toMatchObject({ name: "cups", rows: [{ id: "a", model: "m" }] });
    expect(manifest.problems).toMatchObject([{ place: { file: join(folder, "rows/sheet.csv"), row: 2 } }]);
  });

  test("P26: reads nothing of a file outside of the job's folder", async () => {
    const sheet = await fileWith("sheet.csv", "id,model\na,m\n");
    const path = await fileWith("job.json", JSON.stringify({ rows: sheet }));
    expect(await readManifest(path)).toMatchObject({
      rows: [],
      problems: [
        { message: "the rows' file cannot be used: it lies outside the manifest's folder", got: sheet },
      ],
    });
  });

  test("says so when the sheet does not exist", async () => {
    const folder = await folderWith({ "job.json": '{"rows": "shet.csv"}', "sheet.csv": "id\na\n" });
    expect((await readManifest(join(folder, "job.json"))).problems).toMatchObject([
      {
        place: { file: join(folder, "shet.csv") },
        message: "the rows' file does not exist",
        nearest: "sheet.csv",
      },
    ]);
  });
});

test("JSON is recognised by its first bracket if the file name has no known extension", async () => {
  expect((await readManifest(await fileWith("job", ' [{"id": "a"}]'))).rows).toMatchObject([{ id: "a" }]);
});

describe("a file that cannot be read gives one problem", () => {
  test.each<[string, string | Uint8Array, object]>([
    ["0 bytes", "", { message: "the file is empty", got: "0 bytes" }],
    ["blank lines only", "\n \r\n", { message: "the file is empty", got: "blank lines only" }],
    ["only a header", "id,prompt\n", { message: "the manifest has no rows", got: "none" }],
    ["a NUL byte", "id,prompt\na,\0\n", { place: { row: null, line: 2, lineColumn: 1 }, got: "a NUL byte" }],
    [
      "bytes of no encoding",
      Buffer.from("id,prompt\na,caf\x81\n", "latin1"),
      { place: { row: null, line: 2, lineColumn: 1 }, got: "a byte 0x81, which is not a character" },
    ],
    [
      "a workbook cut short",
      Buffer.from("PK\x03\x04\x14\0", "latin1"),
      { message: "the workbook cannot be read" },
    ],
    [
      "an old workbook",
      Buffer.from("\xd0\xcf\x11\xe0xx", "latin1"),
      { message: "the file is an old Excel workbook (.xls)" },
    ],
  ])("%s", async (_name, content, problem) => {
    const manifest = await sheet(content);
    expect(manifest.rows).toEqual([]);
    expect(manifest.problems).toEqual([
      {
        place: { file: manifest.file, row: null },
        expected: expect.any(String),
        message: expect.any(String),
        got: expect.any(String),
        ...problem,
        ...("place" in problem ? { place: { file: manifest.file, ...(problem.place as object) } } : {}),
      },
    ]);
  });

  test("a folder, with the one manifest in it", async () => {
    const folder = await folderWith({ "demo.csv": "id\na\n", "notes.txt": "" });
    expect((await readManifest(folder)).problems).toMatchObject([{ got: "a folder", nearest: "demo.csv" }]);
  });

  test("a missing file, with the nearest name beside it", async () => {
    const folder = await folderWith({ "demo.csv": "id\na\n", "other.json": "[]" });
    expect((await readManifest(join(folder, "dmeo.csv"))).problems).toEqual([
      {
        place: { file: join(folder, "dmeo.csv"), row: null },
        message: "the manifest does not exist",
        expected: "a manifest file (.csv, .xlsx, .json, .jsonl or .yaml)",
        got: "no such file",
        nearest: "demo.csv",
      },
    ]);
  });

  test("a missing file in an empty folder", async () => {
    const folder = await folderWith({});
    await mkdir(join(folder, "empty"));
    expect((await readManifest(join(folder, "empty", "a.csv"))).problems).toMatchObject([
      { got: "no such file, and nothing in that folder" },
    ]);
  });
});

test("rows with one id are a problem of the later ones, and both are named", async () => {
  const { problems, rows } = await sheet("id,prompt\na,x\nb,y\na,z\na,w\n");
  expect(rows).toHaveLength(4);
  expect(problems).toMatchObject([
    { place: { row: 4, id: "a", column: "id" }, message: "rows 2 and 4 have the same id", got: "a" },
    { place: { row: 5 }, message: "rows 2 and 5 have the same id" },
  ]);
});

test.each([
  ["repeat", "0"],
  ["repeat", "1001"],
  ["repeat", "two"],
  ["repeat", "1.5"],
  ["priority", "high"],
  ["priority", "1001"],
])("a %s of %s is a problem", async (column, value) => {
  const { problems } = await sheet(`id,${column}\na,${value}\n`);
  expect(problems).toMatchObject([
    {
      place: { row: 2, column, id: "a" },
      expected: expect.stringContaining("a whole number from"),
      got: value,
    },
  ]);
});

test("problems come in the order of the sheet, those of the whole file first", async () => {
  const { problems } = await sheet('id,repeat,id\na,x,1\nb\nc,y,2\nd,"z');
  expect(problems.map(({ place }) => place.row)).toEqual([null, null, 2, 3, 4]);
});

test.each([
  ["YAML after comments", "# shots\n# of cups\n\nname: cups\nrows: [{ id: a }]\n"],
  ["a YAML list", "- id: a\n"],
  ["JSON", '\n[{"id": "a"}]'],
  ["JSON Lines", '{"id": "a"}\n{"id": "b"}\n'],
  ["CSV after a comment", "# cups\nid;prompt\na;x\n"],
])("%s is known without a name that tells, as on standard input", async (_name, text) => {
  async function* input() {
    yield Buffer.from(text);
  }
  const { rows, problems, file } = await readManifest("-", { stdin: input() });
  expect(problems).toEqual([]);
  expect(rows[0]).toMatchObject({ id: "a", place: { file: "stdin" } });
  expect(file).toBe("stdin");
});
