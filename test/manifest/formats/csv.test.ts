import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bytesOf } from "../../../src/manifest/formats/bytes.js";
import { type CsvOptions, openCsv } from "../../../src/manifest/formats/csv.js";
import { fromSpreadsheetText } from "../../../src/text/spreadsheet-cell.js";
import { wholeSource } from "../read.js";

const read = async (text: string, options: CsvOptions = {}) => {
  const { pieces } = bytesOf(Buffer.from(text));
  const source = await openCsv("sheet.csv", { pieces, start: text, returns: text.includes("\r") }, options);
  return wholeSource(source);
};

test("the header is row 1 and rows count as a spreadsheet counts, over blank rows and line breaks in cells", async () => {
  const { rows } = await read('id,prompt\na,"one\ntwo"\n\n,\nb,x\n');
  expect(rows.map(({ number, cells }) => [number, cells])).toEqual([
    [2, { id: "a", prompt: "one\ntwo" }],
    [5, { id: "b", prompt: "x" }],
  ]);
});

test.each([
  ["comma", ","],
  ["semicolon", ";"],
  ["tab", "\t"],
])("the %s is found as the delimiter from the header", async (_name, delimiter) => {
  const line = (...cells: string[]) => `${cells.join(delimiter)}\n`;
  const { columns, rows } = await read(
    line("id", "prompt", "params.style") + line("a", '"x, y; z\t!"', "poster"),
  );
  expect(columns).toEqual(["id", "prompt", "params.style"]);
  expect(rows[0]?.cells).toEqual({ id: "a", prompt: "x, y; z\t!", "params.style": "poster" });
});

test("a comma before a space is no delimiter if the header has another", async () => {
  const { columns, rows } = await read("Size (W, H, D);Price, net\n10, 20, 5;12,50\n");
  expect(columns).toEqual(["Size (W, H, D)", "Price, net"]);
  expect(rows[0]?.cells).toEqual({ "Size (W, H, D)": "10, 20, 5", "Price, net": "12,50" });
  expect((await read("Name, Size\ncup, 2\n")).columns).toEqual(["Name", "Size"]);
});

test.each([",", ";", "\t"])(
  "a column # that numbers the rows is part of the header (%j)",
  async (delimiter) => {
    const text = ["#,id,prompt", "1,a,x", "# a comment"].join("\n").replaceAll(",", delimiter);
    const { columns, rows, notes } = await read(text);
    expect(columns).toEqual(["#", "id", "prompt"]);
    expect(rows.map(({ number, cells }) => [number, cells])).toEqual([
      [2, { "#": "1", id: "a", prompt: "x" }],
    ]);
    expect(notes).toEqual(["row 3 begins with # and is a comment"]);
  },
);

test("a formula that is only a text is read as the text that a spreadsheet shows; no other formula is", async () => {
  const lines = ["id,prompt,note", `"=""007""","=""A cup"" ","'=""x"""`, `"=A1","=""a""&""b""","="""""`];
  const { rows } = await read(lines.join("\n"));
  expect(rows.map(({ cells }) => cells)).toEqual([
    { id: "007", prompt: "A cup", note: '="x"' },
    { id: "=A1", prompt: '="a"&"b"', note: '=""' },
  ]);
});

test("a sheet with one column needs no delimiter", async () => {
  expect((await read("prompt\na cup; red\n")).rows[0]?.cells).toEqual({ prompt: "a cup; red" });
});

test("known columns are known by any capitals and spaces; params keep their key; others stay as written", async () => {
  expect((await read(" ID ,Image URL,Params.Aspect,Season \n1,2,3,4")).columns).toEqual([
    "id",
    "image_url",
    "params.Aspect",
    "Season",
  ]);
});

test("invisible characters around the name of a column are not part of it", async () => {
  const sheet = "\u200bid,\u00a0Model\u200b,params.\u2060style,\ufeffSeason\u200b\na,m,x,y";
  expect((await read(sheet)).columns).toEqual(["id", "model", "params.style", "Season"]);
});

test("line ends of Windows, of Unix and of old Macs may be mixed", async () => {
  expect((await read("id,prompt\r\na,x\nb,y\rc,z")).rows.map(({ cells }) => cells["prompt"])).toEqual([
    "x",
    "y",
    "z",
  ]);
});

test("empty cells and columns at the right are a spreadsheet's trail, not a mistake", async () => {
  const { columns, rows, problems } = await read("id,prompt,,\na,x,,\nb,y,,,\n");
  expect(problems).toEqual([]);
  expect(columns).toEqual(["id", "prompt"]);
  expect(rows).toHaveLength(2);
});

test("a column named __proto__ is kept like any other", async () => {
  expect(Object.entries((await read("id,__proto__\na,x")).rows[0]?.cells ?? {})).toEqual([
    ["id", "a"],
    ["__proto__", "x"],
  ]);
});

test("a quote inside a cell that does not begin with one is read as spreadsheets read it", async () => {
  const { rows, problems } = await read(
    '\uFEFF"id",prompt\na,Schuh "Größe"\nb,5" plate\n"c","say ""hi"""\nd,x"',
  );
  expect(problems).toEqual([]);
  expect(rows.map(({ cells }) => [cells["id"], cells["prompt"]])).toEqual([
    ["a", 'Schuh "Größe"'],
    ["b", '5" plate'],
    ["c", 'say "hi"'],
    ["d", 'x"'],
  ]);
});

test.each(["\n", "", "\nc,z\n"])(
  "text after a closing quote stays a problem, after the rows before it (%j)",
  async (end) => {
    const { rows, problems } = await read(`id,prompt\na,5" x\nb,"x" y${end}`);
    expect(rows).toMatchObject([{ number: 2 }]);
    expect(problems).toMatchObject([
      { place: { row: null, line: 3 }, message: "row 3 has text after a closing quote" },
    ]);
  },
);

test.each([
  [",", 'id, model, prompt\na, pix, "a blue cup, new"\n'],
  [",", 'id,model,prompt\n a , pix ,\t"a blue cup, new" \n'],
  [",", 'id,"model" , "prompt"\na,pix,\u00a0"a blue cup, new"\n'],
  [";", 'id; model; prompt\na; pix; "a blue cup, new"\n'],
  ["tab", 'id\tmodel\t prompt\na\tpix\t "a blue cup, new"\n'],
])(
  "blanks around a cell are not part of it, so the quote after one opens the cell (%s, %j)",
  async (_, text) => {
    const { rows, problems } = await read(text);
    expect(problems).toEqual([]);
    expect(rows).toMatchObject([{ cells: { id: "a", model: "pix", prompt: "a blue cup, new" } }]);
  },
);

test("blanks within quotes are part of the cell", async () => {
  expect((await read('prompt, note\n"  a cup ", x\n')).rows[0]?.cells).toMatchObject({ prompt: "  a cup " });
});

test("a formula is text", async () => {
  expect((await read("prompt\n=1+1\n")).rows[0]?.cells["prompt"]).toBe("=1+1");
});

describe("title rows above the header", () => {
  test("are skipped with a note, and the header decides the delimiter", async () => {
    const sheet = "Autumn 2026, draft;;\nMarketing;;\n;;\nid;model;prompt\n1;paint;a mug, red\n";
    const { columns, rows, notes, problems } = await read(sheet);
    expect([columns, problems]).toEqual([["id", "model", "prompt"], []]);
    expect(rows).toMatchObject([{ number: 5, cells: { id: "1", model: "paint", prompt: "a mug, red" } }]);
    expect(notes).toEqual([
      'Rows 1-3 above the header in row 4 were skipped: "Autumn 2026, draft", "Marketing"',
    ]);
  });

  test.each([
    ["one title, one column", "My prompts\nprompt\na mug\n", 2],
    ["Excel's own first line", "sep=;\nAutumn;;\nid;model;prompt\n1;paint;x\n", 2],
    [
      "a header without prompt, with the most known names",
      "Autumn,,\nseason,week,\nid,output,params.x\na,b,c\n",
      3,
    ],
    ["a comment above", "# by Ann\nAutumn,,\nid,,prompt\na,,c\n", 3],
  ])("are found: %s", async (_name, sheet, header) => {
    const { notes, problems, rows } = await read(sheet);
    expect([notes.join(), problems]).toEqual([expect.stringContaining(`the header in row ${header} `), []]);
    expect(rows).toHaveLength(1);
  });

  test.each([
    ["a known name in the first row", "prompt,model\nmodel,prompt\n"],
    ["a value that is called like a column", "name,kind\nAnna,model\nid,b\n"],
    ["no known name at all", "name,kind\nAnna,b\n"],
    ["a title without empty cells beside it: commas split a text", "text\na cup, blue, large\n"],
  ])("are not seen where there are none: %s", async (_name, sheet) => {
    const { columns, notes } = await read(sheet);
    expect([columns, notes]).toEqual([sheet.split("\n")[0]?.split(","), []]);
  });

  test("above a header without any known name: one problem names the row", async () => {
    const sheet = "Autumn 2026,,,\n,,,\nArtikelnr.,Produkt,Text,Preis\n1,Tasse,blau,2\n2,Tasse,rot,2\n";
    expect(await read(sheet)).toMatchObject({
      rows: [],
      problems: [
        {
          place: { row: null },
          message: 'the header seems to be in row 3 ("Artikelnr.", "Produkt", "Text", …), below a title',
          expected: "--header-row 3, or the rows above it removed",
        },
      ],
    });
    const { columns, rows } = await read(sheet, { headerRow: 3 });
    expect(columns).toEqual(["Artikelnr.", "Produkt", "Text", "Preis"]);
    expect(rows.map(({ number }) => number)).toEqual([4, 5]);
  });

  test("--header-row counts rows as the sheet does, and is a problem where nothing is", async () => {
    expect((await read("id,prompt\nid;prompt\na;x\n", { headerRow: 2 })).rows).toMatchObject([
      { number: 3, cells: { id: "a", prompt: "x" } },
    ]);
    expect((await read("id,prompt\na,x\n", { headerRow: 9 })).problems).toMatchObject([
      { place: { row: null }, message: "row 9 cannot be the header", got: "2 rows in all" },
    ]);
  });
});

test("an unquoted comma in a prompt: the problem says to put quotes around it", async () => {
  const { problems } = await read("id,model,prompt,,\na,paint,a mug, blue,,\nb,paint,x,,\n");
  expect(problems).toMatchObject([
    {
      place: { row: 2, id: "a" },
      expected: "3 cells, as in the header (put quotes around a text that contains a comma)",
      got: "4 cells: a | paint | a mug | blue",
    },
  ]);
  expect((await read("id,,prompt\na,x,y\n")).problems).toMatchObject([
    { expected: "a name in the header above every cell", got: 'nothing above "x" in column B' },
  ]);
});

describe("an error names its place, what was expected and what was found", () => {
  test("too few cells", async () => {
    expect(await read("id,prompt,model\na,x,m\nb,y\n")).toMatchObject({
      rows: [{ number: 2 }],
      problems: [
        {
          place: { row: 3, id: "b" },
          message: "the row has too few cells",
          expected: "3 cells, as in the header",
          got: "2 cells: b | y",
        },
      ],
    });
  });

  test("a cell beyond the header", async () => {
    expect((await read("id,prompt\na,a cup, red\n")).problems).toMatchObject([
      {
        place: { row: 2, id: "a" },
        message: "a cell has no column in the header",
        got: "3 cells: a | a cup | red",
      },
    ]);
  });

  test("a quote that is never closed: the rows before it are read, its row and line are named", async () => {
    expect(await read('id,prompt\na,"x\ny"\nb,"open\nc,z\n')).toMatchObject({
      rows: [{ number: 2 }],
      problems: [{ place: { row: null, line: 4 }, message: "a quote that opens in row 3 is never closed" }],
    });
  });

  test("text after a closing quote", async () => {
    expect((await read('id,prompt\na,"x" y\n')).problems).toMatchObject([
      { place: { line: 2 }, message: "row 2 has text after a closing quote" },
    ]);
  });

  test.each(['"id,model,prompt"\n"a,paint,""A cup, blue"""\n', "id|model|prompt\na|paint|A cup\n"])(
    "a header in one cell, as a spreadsheet saves a sheet with another delimiter",
    async (text) => {
      expect(await read(text)).toMatchObject({
        rows: [],
        problems: [
          {
            message: "the whole header is in one cell",
            expected:
              "each name in a cell of its own, separated by commas, semicolons or tabs (in Excel: select the column, then Data > Text to Columns)",
          },
        ],
      });
    },
  );

  test("two columns of one name", async () => {
    expect((await read("id,prompt,Prompt\na,x,y\n")).problems).toMatchObject([
      {
        place: { row: null, column: "prompt" },
        message: 'two columns are named "prompt"',
        got: "columns B and C",
      },
    ]);
  });
});

test("columns of one name that bulkgen does not know are told apart, with a note", async () => {
  const { rows, problems, notes } = await read("id,prompt,Notes,Notes (1),Notes\na,x,one,own,two\n");
  expect(problems).toEqual([]);
  expect(rows).toMatchObject([{ cells: { "Notes (1)": "own", "Notes (2)": "one", "Notes (3)": "two" } }]);
  expect(notes).toEqual(['columns C and E are named "Notes"; here they are "Notes (2)" and "Notes (3)"']);
});

const textIn = (cell: string) => /^="([^"]+)"\s*$/.exec(cell)?.[1] ?? fromSpreadsheetText(cell);

test("whatever is written by the rules of CSV is read back, cell by cell and row by row", async () => {
  const cell = fc.string({
    unit: fc.constantFrom(...("aé美\"',;\t\n\r =@😀".match(/./gsu) ?? [])),
    maxLength: 8,
  });
  const table = fc.array(fc.tuple(cell, cell, cell), { maxLength: 8 });
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
  await fc.assert(
    fc.asyncProperty(
      table,
      fc.constantFrom(",", ";", "\t"),
      fc.constantFrom("\n", "\r\n"),
      async (rows, delimiter, end) => {
        const header = ["id", "prompt", "season"];
        const text = [header, ...rows.map((row) => row.map(quoted))]
          .map((row) => row.join(delimiter))
          .join(end);
        const expected = rows
          .map((row, index) => ({
            number: index + 2,
            cells: header.flatMap((name, at) => (row[at]?.trim() ? [[name, textIn(row[at])]] : [])),
          }))
          .filter(({ cells }) => cells.length > 0);
        const got = await read(text);
        expect(got.problems).toEqual([]);
        expect(got.rows.map(({ number, cells }) => ({ number, cells: Object.entries(cells) }))).toEqual(
          expected,
        );
      },
    ),
    { numRuns: 300 },
  );
});

const letters = (text: string) => text.replace(/[^aé]/g, "").length;

test("any text is either refused with a problem, or read with every letter in a column or a cell", async () => {
  const unit = fc.constantFrom("a", '"', ",", ";", "\t", "\n", "\r", " ", "é");
  const header = fc.constantFrom("", "id,prompt\n", "prompt;a;é\r\n");
  let whole = 0;
  await fc.assert(
    fc.asyncProperty(header, fc.string({ unit, maxLength: 20 }), async (start, rest) => {
      const text = start + rest;
      const { columns, rows, problems } = await read(text);
      const numbers = rows.map(({ number }) => number);
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
      const cells = rows.flatMap((row) => Object.entries(row.cells));
      expect(cells.filter(([column, cell]) => !columns.includes(column) || cell.trim() === "")).toEqual([]);
      if (problems.length > 0 || rows.some(({ misfit }) => misfit !== undefined)) return;
      if (rows.length > 0) whole++;
      const found = [...columns, ...cells.map(([, cell]) => cell)].join("");
      expect(letters(found)).toBe(letters(text));
    }),
    { numRuns: 1_000 },
  );
  expect(whole).toBeGreaterThan(50);
});
