import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { parsed } from "../../../src/manifest/formats/document.js";
import { readDocument } from "../../../src/manifest/job-file/rows.js";
import { wholeSource } from "../read.js";

const read = async (text: string) => {
  const { source, rowsFrom } = readDocument("job.json", text, "JSON");
  return { source: await wholeSource(source), rowsFrom };
};

test("an array of rows is a manifest; params are an object; numbers and truth values are texts as written", async () => {
  const { source } = await read(
    '[{"id": 7, "prompt": "a cup", "params": {"seed": 1.0, "hd": true, "style": null}}]',
  );
  expect(source.problems).toEqual([]);
  expect(source.rows).toMatchObject([
    { number: 1, cells: { id: "7", prompt: "a cup", "params.seed": "1.0", "params.hd": "true" } },
  ]);
  expect(source.rows[0]?.cells).not.toHaveProperty("params.style");
});

test("each row and each of its fields knows its line and column", async () => {
  const { source } = await read('[\n  {"id": "a",\n   "model": "m", "params": {"style": "x"}}\n]');
  expect(source.rows[0]?.mark).toEqual({ line: 2, lineColumn: 3 });
  expect(source.rows[0]?.marks?.["model"]).toEqual({ line: 3, lineColumn: 13 });
  expect(source.rows[0]?.marks?.["params.style"]).toEqual({ line: 3, lineColumn: 38 });
});

test.each(["before", "after"])("a YAML row's own fields win over merged ones that stand %s them", (where) => {
  const merge = ["<<: *cup", "prompt: a bowl"];
  const [first, then] = where === "before" ? merge : merge.toReversed();
  const read = parsed("job.yaml", `- &cup { model: paint, prompt: a cup }\n- ${first}\n  ${then}\n`, "YAML");
  expect("plain" in read && read.plain).toEqual([
    { model: "paint", prompt: "a cup" },
    { model: "paint", prompt: "a bowl" },
  ]);
});

test("a job has a name, defaults and rows", async () => {
  const { source, rowsFrom } = await read(
    '{"name": " Autumn ", "defaults": {"model": "m", "params": {"style": "x"}}, "rows": [{"prompt": "p"}]}',
  );
  expect(source).toMatchObject({
    job: { name: "Autumn", defaults: { cells: { model: "m", "params.style": "x" } } },
    rows: [{ cells: { prompt: "p" } }],
    problems: [],
  });
  expect(rowsFrom).toBeUndefined();
});

test("a job's rows may be the name of a sheet", async () => {
  expect(await read('{"rows": "sheet.csv"}')).toMatchObject({
    rowsFrom: "sheet.csv",
    source: { problems: [] },
  });
});

test("comments and a comma too many do no harm", async () => {
  expect((await read('[{"prompt": "p",},\n# a remark\n]')).source).toMatchObject({
    rows: [{ cells: { prompt: "p" } }],
  });
});

test.each([
  ["A cup: blue", 'a text with ": " in it, which needs quotes around it'],
  ["@prompts/x.txt", "a text that begins with @, which needs quotes around it"],
  ["%off", "a text that begins with %, which needs quotes around it"],
  ["- a cup", "a text that begins with -, which needs quotes around it"],
  ["!red cup", "a text that begins with !red, which needs quotes around it"],
  ["{{ product }}", "an object; a text that begins with {{ needs quotes around it"],
  [
    "{{ product }} on oak",
    "text behind a value; put quotes around all of it, and a backslash before each quote inside",
  ],
  [
    "'it's a cup'",
    "text behind a value; put quotes around all of it, and a backslash before each quote inside",
  ],
  ["> a cup", "text on the line of a | or >; begin it on the next line"],
  ["a\n  b", "a line that is no field; the lines of a text are indented further than its field"],
  ["a\n model: b", "a line that is indented less than the fields above it"],
  ["a\n  prompt: b", "two fields of one name"],
])("a slip of a person who writes YAML is told in words: %s", async (prompt, got) => {
  const { source } = readDocument("rows.yaml", `- id: a\n  prompt: ${prompt}\n`, "YAML");
  expect((await wholeSource(source)).problems).toMatchObject([{ got }]);
});

test.each([
  'rows:\n  - id: "a"\n\tprompt: b\n',
  "rows:\n  - id: a\n  \tprompt: b\n",
  "rows:\n  -\tid: a\n\tprompt: b\n",
  "rows:\n  - id: a\n    prompt: |\n      b\n\tc\n",
  'rows:\n  - {id: "a",\n\tprompt: b}\n',
])("a tab at the beginning of a line is told of as one: %j", async (text) => {
  const { source } = readDocument("rows.yaml", text, "YAML");
  const { problems } = await wholeSource(source);
  expect(problems).toMatchObject([{ got: "a tab at the beginning of a line; YAML indents with spaces" }]);
});

test("an alias as the name of a field is refused", async () => {
  const { problems } = (await read('[{"id": &a "x", *a : "y"}]')).source;
  expect(problems).toMatchObject([{ got: "an alias (*name) as the name of a field" }]);
});

describe("an error names line and column, what was expected and what was found", () => {
  test.each<[string, string, object]>([
    ["a missing bracket", '[{"prompt": "p"}', { line: 1, lineColumn: 17 }],
    ["a missing comma", '[{"id": "a"\n "prompt": "p"}]', { line: 2 }],
    ["text without quotes", '[\n{"prompt": cup}]', { line: 2, lineColumn: 12 }],
    ["a field that is there twice", '[{"id": "a", "id": "b"}]', { line: 1, lineColumn: 14 }],
    ["a line break inside a text", '[{"prompt": "a\nb"}]', { line: 1, lineColumn: 13 }],
    ["an alias", '[&a {"prompt": "p"}, *a]', { line: 1, lineColumn: 22 }],
    ["two documents", "[]\n---\n[]", { line: 2 }],
  ])("syntax: %s", async (_name, text, place) => {
    expect((await read(text)).source).toMatchObject({
      rows: [],
      problems: [{ place: { row: null, ...place }, message: "the file is not valid JSON" }],
    });
  });

  test("a row that is no object", async () => {
    expect((await read('[{"prompt": "p"}, "q"]')).source.problems).toMatchObject([
      { place: { row: 2, lineColumn: 19 }, expected: "an object with the row's fields", got: '"q"' },
    ]);
  });

  test("a field that holds a list", async () => {
    expect((await read('[{"id": "a", "prompt": ["p", "q"]}]')).source.problems).toMatchObject([
      {
        place: { row: 1, id: "a", column: "prompt", line: 1, lineColumn: 24 },
        expected: "text, a number, or true or false",
        got: "a list of 2",
      },
    ]);
  });

  test("a parameter that holds an object", async () => {
    expect((await read('[{"params": {"style": {"a": 1}}}]')).source.problems).toMatchObject([
      { place: { row: 1, column: "params.style" }, got: "an object" },
    ]);
  });

  test.each([
    [
      '{"id": "a", "Prompt": "p", "prompt": "q"}',
      "prompt",
      "two fields mean prompt",
      '"Prompt" and "prompt"',
    ],
    [
      '{"id": "a", "params": {"size": 1}, "params.size": 2}',
      "params.size",
      "two fields mean params.size",
      '"params: size" and "params.size"',
    ],
  ])("two fields of a row that mean the same column: %s", async (row, column, message, got) => {
    const { source } = await read(`[{"id": "b"},\n ${row}]`);
    expect(source.rows).toMatchObject([{ cells: { id: "b" } }]);
    expect(source.problems).toMatchObject([
      { place: { row: 2, id: "a", column, line: 2 }, message, expected: "one of the two", got },
    ]);
  });

  test("two variables that mean the same one, but no field that is empty", async () => {
    const { source } = await read('{"vars": {"Model": "a", "model ": "b"}, "rows": [{"ID": "", "id": "a"}]}');
    expect(source.rows).toMatchObject([{ cells: { id: "a" } }]);
    expect(source.problems).toMatchObject([
      { place: { row: null, column: "model" }, message: "two fields mean model" },
    ]);
  });

  test("an unknown field of the job, with the nearest one", async () => {
    expect((await read('{"row": [],\n "rows": []}')).source.problems).toMatchObject([
      { place: { row: null, column: "row" }, message: 'unknown field "row"', got: "row", nearest: "rows" },
    ]);
  });

  test("an unknown default", async () => {
    expect((await read('{"defaults": {"modle": "m"}, "rows": []}')).source.problems).toMatchObject([
      { place: { column: "defaults.modle" }, message: 'unknown field "modle" in defaults', nearest: "model" },
    ]);
  });

  test.each([
    ["nothing", "{}", "nothing"],
    ["an object", '{"rows": {}}', "an object"],
  ])("rows that are %s", async (_name, text, got) => {
    expect((await read(text)).source.problems).toMatchObject([
      { place: { column: "rows" }, expected: "an array of rows, or the name of a CSV file", got },
    ]);
  });

  test.each(['"text"', "5", "null"])("a file that is only %s", async (text) => {
    expect((await read(text)).source.problems).toMatchObject([
      { expected: "an array of rows, or an object with rows" },
    ]);
  });

  test("all wrong rows in one message", async () => {
    const rows = Array.from({ length: 50 }, (_, index) => ({
      prompt: index % 2 === 0 ? ["wrong"] : "right",
    }));
    const { problems, rows: good } = (await read(JSON.stringify(rows))).source;
    expect(problems.map(({ place }) => place.row)).toEqual(
      Array.from({ length: 25 }, (_, index) => index * 2 + 1),
    );
    expect(good).toHaveLength(25);
  });
});

test("whatever JSON.stringify writes is read as it was, compact or indented", async () => {
  const text = fc.string({ unit: "grapheme", maxLength: 12 });
  const nasty = fc.constantFrom(
    "\n",
    "\r\n",
    '"',
    "\\",
    "# x",
    "a: b",
    "\u2028",
    "\u0000",
    "{}",
    "- x",
    "~",
    "null",
  );
  const value = fc.oneof(text, nasty, fc.integer());
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.dictionary(fc.constantFrom("id", "prompt", "season", "__proto__"), value)),
      fc.constantFrom(0, 2),
      async (rows, indent) => {
        const { problems, rows: got } = (await read(JSON.stringify(rows, null, indent))).source;
        expect(problems).toEqual([]);
        const expected = rows.map((row) =>
          Object.entries(row).flatMap(([key, held]) =>
            String(held).trim() === "" ? [] : [[key, String(held)]],
          ),
        );
        expect(got.map(({ cells }) => Object.entries(cells))).toEqual(expected);
      },
    ),
    { numRuns: 300 },
  );
});

test("any text is either refused with a problem, or read row by row as a YAML parser reads it", async () => {
  const piece = fc.constantFrom(...'{}[]":,a\n 1%'.split(""), "rows", "&a", "*a", "<<", "!!x", "- ");
  const value = fc.constantFrom("a", "1", "rows", "");
  const rows = fc.array(fc.dictionary(fc.constantFrom("id", "prompt", "a"), value), { maxLength: 4 });
  const valid = fc.oneof(rows, fc.record({ rows })).map((made) => JSON.stringify(made));
  const spoiled = fc
    .tuple(valid, fc.array(piece, { maxLength: 1 }), fc.nat(), fc.nat(1))
    .map(([text, [inserted = ""], at, removed]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + inserted + text.slice(place + removed);
    });
  const random = fc.array(piece, { maxLength: 25 }).map((pieces) => pieces.join(""));
  let whole = 0;
  await fc.assert(
    fc.asyncProperty(fc.oneof(spoiled, random), async (text) => {
      const { source, rowsFrom } = await read(text);
      if (source.problems.length > 0) return;
      whole++;
      const parsed: unknown = parse(text, { merge: true, logLevel: "silent" });
      const expected = Array.isArray(parsed) ? parsed : (parsed as { rows: unknown }).rows;
      if (rowsFrom !== undefined) expect(rowsFrom).toBe(expected);
      else expect(source.rows).toHaveLength((expected as unknown[]).length);
    }),
    { numRuns: 1_500 },
  );
  expect(whole).toBeGreaterThan(50);
});

test.each([
  ["brackets", "[".repeat(20_000)],
  ["maps", `${"{b: ".repeat(300)}1${"}".repeat(300)}`],
  ["dashes on one line", `${"- ".repeat(5_000)}1`],
  ["question marks on one line", `${"? ".repeat(5_000)}1`],
  [
    "lines that are indented more and more",
    Array.from({ length: 3_000 }, (_, at) => `${" ".repeat(at)}a:`).join("\n"),
  ],
])("nesting deeper than any manifest's is refused before the parser follows it: %s", (_, text) => {
  expect(parsed("f", text, "YAML")).toMatchObject({ problem: { got: "values nested hundreds deep" } });
});

test("brackets, dashes and blanks within texts nest nothing", () => {
  const many = "[".repeat(5_000);
  const text = `- prompt: '${many}'\n- prompt: a ${many}\n- prompt: |\n    ${"- ".repeat(4_000)}\n${" ".repeat(2_000)}b\n`;
  expect(parsed("f", text, "YAML")).toMatchObject({ plain: [{ prompt: many }, { prompt: `a ${many}` }, {}] });
  expect(parsed("f", JSON.stringify([{ prompt: many }]), "JSON")).toMatchObject({
    plain: [{ prompt: many }],
  });
  expect(parsed("f", "- a\n".repeat(1_000), "YAML")).toHaveProperty("plain.length", 1_000);
});
