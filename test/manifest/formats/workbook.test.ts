import { readFile, writeFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { constants, crc32, deflateRawSync } from "node:zlib";
import { expect, test } from "vitest";
import writeWorkbook, { type SheetData } from "write-excel-file/node";
import { entriesOf, measure } from "../../../src/manifest/formats/unpacked.js";
import { amount } from "../../fuzz/amount.js";
import { fileWith } from "../folder.js";
import { readManifest } from "../read.js";

async function workbook(sheets: Record<string, SheetData>, name = "set.xlsx"): Promise<string> {
  const made = writeWorkbook(Object.entries(sheets).map(([sheet, data]) => ({ sheet, data })));
  return fileWith(name, await made.toBuffer());
}

const time = { value: new Date(Date.UTC(1899, 11, 30, 16, 9)), type: Date, format: "h:mm" };
const day = { value: new Date(Date.UTC(2026, 2, 4)), type: Date, format: "yyyy-mm-dd" };

test("the first sheet is read: text as it is, numbers, truth values, days and times as text; blank rows count", async () => {
  const path = await workbook({
    Cups: [
      ["ID", "Prompt", "params.seed", "params.hd", "params.aspect_ratio", "season", null],
      ["a", " two\nlines ", 1.5, true, time, day, null],
      [null, null, null, null, null, null, null],
      ["b", "x", 7, null, null, null, null],
    ],
  });
  const { rows, problems, name } = await readManifest(path);
  expect([problems, name]).toEqual([[], "set"]);
  expect(rows).toMatchObject([
    {
      number: 2,
      id: "a",
      prompt: " two\nlines ",
      params: { seed: "1.5", hd: "TRUE", aspect_ratio: "16:09" },
      columns: { season: "2026-03-04" },
    },
    { number: 4, id: "b", params: { seed: "7" } },
  ]);
});

test("another sheet is read by its name; without one, a note names those that were not read", async () => {
  const path = await workbook({ Cups: [["id"], ["a"]], Bowls: [["id"], ["b"]] });
  expect((await readManifest(path, { sheet: "Bowls" })).rows).toMatchObject([{ id: "b" }]);
  const first = await readManifest(path);
  expect(first.rows).toMatchObject([{ id: "a" }]);
  expect(first.notes).toEqual([
    'the first sheet of the workbook was read, "Cups"; --sheet names another (Bowls)',
  ]);
  expect((await readManifest(path, { sheet: "Bowl" })).problems).toMatchObject([
    { message: 'the workbook has no sheet "Bowl"', expected: "one of: Cups, Bowls", nearest: "Bowls" },
  ]);
});

test("a first sheet without rows is named, with the sheets that may have been meant", async () => {
  const path = await workbook({ Notes: [["Read me first"]], Rows: [["id"], ["a"]] });
  expect(await readManifest(path)).toMatchObject({
    rows: [],
    problems: [
      {
        message: 'the first sheet, "Notes", has no rows',
        expected: "rows in it, or --sheet with the name of another sheet (Rows)",
      },
    ],
  });
  expect((await readManifest(path, { sheet: "Rows" })).rows).toMatchObject([{ id: "a" }]);
  const alone = await readManifest(await workbook({ Notes: [["Read me first"]] }));
  expect(alone.problems).toMatchObject([{ message: "the manifest has no rows" }]);
});

test("title rows above the header are skipped with a note; --header-row names another header", async () => {
  const path = await workbook({
    Cups: [
      ["Autumn 2026", null, null],
      [null],
      ["ID", "Model", "Prompt"],
      ["a", "paint", "x"],
      ["b", "id", "y"],
    ],
  });
  const { rows, notes } = await readManifest(path);
  expect(rows.map(({ number, id }) => [number, id])).toEqual([
    [4, "a"],
    [5, "b"],
  ]);
  expect(notes).toEqual(['Rows 1-2 above the header in row 3 were skipped: "Autumn 2026"']);
  expect((await readManifest(path, { headerRow: 4 })).columns).toEqual(["a", "paint", "x"]);
});

/**
 * A workbook of two sheets, of which the second, "Data", has these rows of XML. Style 1 is a date with a time. The first
 * has these attributes, and then a row; or it is a chart.
 */
async function dataWorkbook(
  rows: string,
  after = "",
  first = "",
  kind: "worksheet" | "chartsheet" = "worksheet",
  /** The addresses of the second sheet's links, by their ids. */
  links: Record<string, string> = {},
): Promise<string> {
  const { ZipFile } = await import("yazl");
  const zip = new ZipFile();
  const add = (name: string, xml: string) => zip.addBuffer(Buffer.from(xml), name);
  const space = "http://schemas.openxmlformats.org";
  const sheets = ["First", "Data"].map(
    (name, at) => `<sheet name="${name}" sheetId="${at + 1}"${at === 0 ? first : ""} r:id="r${9 - at}"/>`,
  );
  const types = `${space}/officeDocument/2006/relationships`;
  add("xl/workbook.xml", `<workbook xmlns:r="${types}"><sheets>${sheets.join("")}</sheets></workbook>`);
  const relations = [1, 2].map(
    (at) =>
      `<Relationship Id="r${10 - at}" Type="${types}/${at === 1 ? kind : "worksheet"}" Target="worksheets/sheet${at}.xml"/>`,
  );
  add("xl/_rels/workbook.xml.rels", `<Relationships>${relations.join("")}</Relationships>`);
  add("xl/styles.xml", `<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs></styleSheet>`);
  const sheet = (data: string) => `<worksheet><sheetData>${data}</sheetData>${after}</worksheet>`;
  const own = `<row r="2">${text("A2", "z")}</row>`;
  add(
    "xl/worksheets/sheet1.xml",
    sheet(first === "" ? `<row r="1"><c r="A1" t="e"><v>#N/A</v></c></row>` : header("id") + own),
  );
  add("xl/worksheets/sheet2.xml", sheet(rows));
  const targets = Object.entries(links).map(
    ([id, target]) =>
      `<Relationship Id="${id}" Type="${types}/hyperlink" Target="${target}" TargetMode="External"/>`,
  );
  add("xl/worksheets/_rels/sheet2.xml.rels", `<Relationships>${targets.join("")}</Relationships>`);
  zip.end();
  return fileWith("data.xlsx", await buffer(zip.outputStream));
}

const text = (at: string, value: string) => `<c r="${at}" t="inlineStr"><is><t>${value}</t></is></c>`;
const header = (...names: string[]) =>
  `<row r="1">${names.map((name, at) => text(`${"ABCDEF"[at]}1`, name)).join("")}</row>`;
const picture = "a photo of {{ product }}";

test("a chart on a sheet of its own is no sheet to read, also before the rows", async () => {
  const rows = `${header("id")}<row r="2" hidden="1">${text("A2", "a")}</row>`;
  const path = await dataWorkbook(rows, "", "", "chartsheet");
  const { rows: read, notes } = await readManifest(path);
  expect(read).toMatchObject([{ id: "a" }]);
  expect(notes).toEqual([expect.stringContaining("row 2 is hidden in the spreadsheet")]);
  expect((await readManifest(path, { sheet: "First" })).problems).toMatchObject([
    { message: 'the workbook has no sheet "First"', expected: "one of: Data" },
  ]);
});

test("a workbook whose cells have no addresses is refused with what to do", async () => {
  const path = await dataWorkbook(`<row><c t="inlineStr"><is><t>id</t></is></c></row>`);
  expect((await readManifest(path, { sheet: "Data" })).problems).toMatchObject([
    { message: "the workbook cannot be read", got: expect.stringContaining("save it there") },
  ]);
});

test("a percentage is read as the sheet shows it, and a param as the number that it is", async () => {
  const of = (value: number, format: string) => ({ value, type: Number, format });
  const path = await workbook({
    Sale: [
      ["id", "prompt", "off", "odd", "share", "params.strength"],
      ["a", "{{ off }} off", of(0.07, "0%"), of(0.155, "0.0%"), of(0.5, '0.0 "%"'), of(0.5, "0%")],
      ["b", "{{ off }} off", of(1, "0%"), of(-0.2, '0 "points" %'), 0.5, null],
    ],
  });
  const { rows } = await readManifest(path);
  expect(rows[0]?.params).toEqual({ strength: "0.5" });
  expect(rows.map(({ prompt, columns: { odd, share } }) => [prompt, odd, share])).toEqual([
    ["7% off", "15.5%", "0.5"],
    ["100% off", "-20%", "0.5"],
  ]);
});

test("a CSV that was opened in one column and saved as a workbook is one problem", async () => {
  const path = await workbook({ Cups: [["id,model,prompt"], ["a,paint,A cup"]] });
  expect((await readManifest(path)).problems).toMatchObject([
    {
      message: "the whole header is in one cell",
      expected: "each name in a cell of its own (in Excel: select the column, then Data > Text to Columns)",
    },
  ]);
});

test("a calculated number is read with the 15 digits that a spreadsheet counts, and a long whole number with all", async () => {
  const path = await workbook({
    Prices: [
      ["id", "prompt", "price"],
      [4012345678901234, "{{ price }}", 19.9 * 1.19],
      ["b", "{{ price }}", 0.1 + 0.2],
    ],
  });
  expect((await readManifest(path)).rows).toMatchObject([
    { id: "4012345678901234", prompt: "23.681" },
    { prompt: "0.3" },
  ]);
});

test("a cell that shows a value which the file does not have is a problem where it is needed", async () => {
  const path = await dataWorkbook(
    `${header("id", "prompt", "product", "params.style", "margin")}
    <row r="2">${text("A2", "a")}${text("B2", picture)}<c r="C2" t="e"><f>VLOOKUP(A2,X:Y,2,0)</f><v>#N/A</v></c></row>
    <row r="3">${text("A3", "b")}${text("B3", picture)}${text("C3", "pot")}<c r="D3" t='e'><v>#REF!</v></c></row>
    <row r="4">${text("A4", "c")}<c r="B4"><f>A1&amp;A2</f><v/></c>${text("C4", "pot")}</row>
    <row r="5">${text("A5", "d")}${text("B5", picture)}<c r="C5" t="str"><f t="shared" si="0"/></c></row>
    <row r="6">${text("A6", "e")}${text("B6", picture)}${text("C6", "jug")}<c r="E6" t="e"><v>#DIV/0!</v></c></row>
    <row r="7"><c r="B7" t="e"><f>B99</f><v>#NAME?</v></c></row>`,
  );
  const { problems, rows } = await readManifest(path, { sheet: "Data" });
  expect(rows.map(({ prompt }) => prompt)).toEqual(["a photo of jug"]);
  expect(problems.map(({ place, message, got }) => [place.row, place.column, message, got])).toEqual([
    [2, "product", "the cell has a formula error", "#N/A"],
    [3, "params.style", "the cell has a formula error", "#REF!"],
    [4, "prompt", "the cell has a formula that was saved without its result", "no result"],
    [5, "product", "the cell has a formula that was saved without its result", "no result"],
    [7, "prompt", "the cell has a formula error", "#NAME?"],
  ]);
});

test("a template with filters needs only the cells that it names, and the problem names theirs", async () => {
  const lost = (place: string) => `<c r="${place}" t="e"><v>#REF!</v></c>`;
  const path = await dataWorkbook(
    `${header("id", "prompt", "product", "lang", "name_en", "notes")}
    <row r="2">${text("A2", "a")}${text("B2", "{{ product | upcase }}")}${lost("C2")}</row>
    <row r="3">${text("A3", "b")}${text("B3", "{{ name_{{lang}} }}")}${text("D3", "en")}${text("E3", "cup")}${lost("F3")}</row>`,
  );
  const { problems, rows } = await readManifest(path, { sheet: "Data" });
  expect(rows.map(({ prompt }) => prompt)).toEqual(["cup"]);
  expect(problems.map(({ place: { row, column }, got }) => [row, column, got])).toEqual([
    [2, "product", "#REF!"],
  ]);
});

test.each(["hidden", "veryHidden"])(
  "a first sheet that is %s is passed over for the first that a person sees, and can be named",
  async (state) => {
    const path = await dataWorkbook(
      `${header("id")}<row r="2">${text("A2", "b")}</row>`,
      "",
      ` state="${state}"`,
    );
    const { rows, notes } = await readManifest(path);
    expect(rows).toMatchObject([{ id: "b" }]);
    expect(notes).toContain(
      'the first sheet of the workbook was read, "Data"; --sheet names another (First, which is hidden)',
    );
    expect((await readManifest(path, { sheet: "First" })).rows).toMatchObject([{ id: "z" }]);
  },
);

test("the address behind a cell is read where a column takes addresses, and the text elsewhere", async () => {
  const link = (cell: string, id: string) => `<hyperlink ref="${cell}" r:id="${id}"/>`;
  const formula = (cell: string, address: string, shown: string) =>
    `<c r="${cell}" t="str"><f>HYPERLINK("${address}","${shown}")</f><v>${shown}</v></c>`;
  const rows = `${header("id", "prompt", "image_url")}
    <row r="2">${text("A2", "a")}${text("B2", "our site")}${text("C2", "photo")}</row>
    <row r="3">${text("A3", "b")}${text("B3", "x")}${formula("C3", "https://cdn.example/b.png?x=1&amp;y=2", "photo b")}</row>
    <row r="4">${text("A4", "c")}${text("B4", "x")}${text("C4", "https://cdn.example/c.png")}</row>
    <row r="5">${text("A5", "d")}${text("B5", "x")}${text("C5", "photos/d.png")}</row>`;
  const links = `<hyperlinks>${["B2", "C2", "C4"].map((cell) => link(cell, `k${cell}`)).join("")}${link("C5", "file")}</hyperlinks>`;
  const path = await dataWorkbook(rows, links, "", "worksheet", {
    kB2: "https://www.example",
    kC2: "https://cdn.example/a.png?x=1&amp;y=2",
    kC4: "https://cdn.example/other.png",
    file: "photos/d.png",
  });
  const { rows: read } = await readManifest(path, { sheet: "Data" });
  expect(read.map(({ prompt, inputs }) => [prompt, inputs.image_url])).toEqual([
    ["our site", "https://cdn.example/a.png?x=1&y=2"],
    ["x", "https://cdn.example/b.png?x=1&y=2"],
    ["x", "https://cdn.example/c.png"],
    ["x", "photos/d.png"],
  ]);
});

test("rows that the spreadsheet hides are read, and a note says so", async () => {
  const rows = (hidden: string) =>
    `${header("id")}<row r="2" ${hidden}>${text("A2", "a")}</row><row r="3">${text("A3", "b")}</row>
    <row spans="1:1" r="4" ${hidden}>${text("A4", "c")}</row><row r="5" ${hidden}/>`;
  const filtered = await readManifest(await dataWorkbook(rows('hidden="1"')), { sheet: "Data" });
  expect(filtered.rows).toHaveLength(3);
  expect(filtered.notes).toEqual([
    "rows 2, 4 are hidden in the spreadsheet, and are read like the others; to leave them out, select rows with --filter or delete them",
  ]);
  const shown = await readManifest(await dataWorkbook(rows('hidden="0"')), { sheet: "Data" });
  expect(shown.notes).toEqual([]);
});

test("a formula whose result is an empty text is an empty cell", async () => {
  const path = await dataWorkbook(
    `${header("id", "prompt", "product")}<row r="2">${text("A2", "a")}${text("B2", `${picture}.`)}<c r="C2" t="str"><f>X1</f><v></v></c></row>`,
  );
  expect(await readManifest(path, { sheet: "Data" })).toMatchObject({
    problems: [],
    rows: [{ prompt: "a photo of ." }],
  });
});

test("merged cells are a problem of the rows that need a value and have none; merged titles and empty cells are not", async () => {
  const path = await dataWorkbook(
    `<row r="1">${text("A1", "Autumn")}</row>${header("id", "prompt", "product", "group").replaceAll('1"', '2"')}
    <row r="3">${text("A3", "a")}${text("B3", picture)}${text("C3", "pot")}${text("D3", "teas")}</row>
    <row r="4">${text("A4", "b")}${text("B4", picture)}</row>
    <row r="5">${text("A5", "c")}${text("B5", "a cup")}</row>`,
    `<mergeCells><mergeCell ref="A1:D1"/><mergeCell ref="C3:C4"/><mergeCell ref="D3:D5"/><mergeCell ref="E3:F5"/></mergeCells>`,
  );
  const { problems, rows } = await readManifest(path, { sheet: "Data" });
  expect(rows.map(({ id }) => id)).toEqual(["a", "c"]);
  expect(problems).toEqual([
    {
      place: { file: path, row: 4, id: "b", column: "product" },
      message: "the cell is part of merged cells, and only the first of them has a value",
      expected: "a value in each cell (unmerge the cells and fill in the others)",
      got: "the merged cells C3:C4",
    },
  ]);
});

test("a time of day is read to the second, although most are no exact fraction of a day", async () => {
  const times = [
    ["46023.03472222222", "2026-01-01 00:50"],
    ["46023.09722222222", "2026-01-01 02:20"],
    ["46023.5", "2026-01-01 12:00"],
  ];
  const rows = times.map(
    ([serial], at) => `<row r="${at + 2}"><c r="A${at + 2}" s="1"><v>${serial}</v></c></row>`,
  );
  const path = await dataWorkbook(`${header("prompt")}${rows.join("")}`);
  const read = await readManifest(path, { sheet: "Data" });
  expect(read.rows.map(({ prompt }) => prompt)).toEqual(times.map(([, shown]) => shown));
});

test("a first sheet of notes is refused if another sheet has the columns of a manifest", async () => {
  const rows: SheetData = [
    ["The autumn set", null],
    ["Model", "Prompt"],
    ["m", "a cup"],
  ];
  const notes: SheetData = [
    ["Please do not change", null],
    ["Updated", day],
    ["By", "Anna"],
  ];
  const path = await workbook({ Notes: notes, Rows: rows, Other: [["x"]] });
  expect(await readManifest(path)).toMatchObject({
    rows: [],
    problems: [
      {
        message: 'the first sheet, "Notes", has no column that bulkgen knows, but the sheet "Rows" has',
        expected: '--sheet "Rows" (or --sheet "Notes", if it is the right one)',
        got: "no --sheet",
      },
    ],
  });
  expect((await readManifest(path, { sheet: "Rows" })).rows).toMatchObject([{ prompt: "a cup" }]);
  const products: SheetData = [["Product"], ["cup"]];
  const first = await readManifest(await workbook({ Products: products, Prices: [["Price"], ["7"]] }));
  expect(first).toMatchObject({ problems: [], rows: [{ columns: { Product: "cup" } }] });
});

test("a workbook is known by its bytes, whatever its name; a sheet of a CSV is refused", async () => {
  const path = await workbook({ Cups: [["id"], ["a"]] }, "set.csv");
  expect((await readManifest(path)).rows).toMatchObject([{ id: "a" }]);
  const csv = await fileWith("set.csv", "id\na\n");
  expect((await readManifest(csv, { sheet: "Cups" })).problems).toMatchObject([
    { message: "the file has no sheets to choose from", got: "--sheet Cups" },
  ]);
});

// `npm run fuzz` unpacks as much as a workbook may have.
test("a workbook that unpacks to more than it may is refused, whatever sizes it states of itself", {
  tags: ["fuzz"],
}, () => {
  // A packed piece that ends at a whole byte and is not the last can be repeated.
  const megabyte = deflateRawSync(Buffer.alloc(1_000_000, " "), { finishFlush: constants.Z_FULL_FLUSH });
  const workbookOf = (bytes: number) => {
    const header = entryHeader("xl/worksheets/sheet1.xml");
    return Buffer.concat([
      header,
      ...Array(Math.floor(bytes / 1_000_000)).fill(megabyte),
      deflateRawSync(Buffer.alloc(bytes % 1_000_000, " ")),
    ]);
  };
  const megabytes = amount(5, 500);
  const limit = megabytes === 500 ? [] : [megabytes * 1_000_000];
  expect(measure(workbookOf(megabytes * 1_000_000 + 1), ...limit).large).toEqual({
    what: "the workbook is too large when it is unpacked",
    expected: `at most ${megabytes} MB`,
  });
  expect(measure(workbookOf(1_000_000), 1_000_000).large).toBeNull();
});

test.each([
  ["a row that no spreadsheet has", `<row r="99999999999"><c r="A99999999999"/></row>`],
  ["a column that no spreadsheet has", `<c r='ZZZZ2'/>`],
  ["more cells before it than fit", `<c s="1" r = "XFD1048576"/>`],
  ["an address that is written in another way", `<c r="A&#57;9999999"/>`],
  ["a row in another notation", `<c r="A2e9"/>`],
  ["a row's number in another notation", `<x:row spans='1:2' r='0x7fffffff'>`],
  ["a column of other characters", `<c s="1" r="A\u4e00\u4e002"/>`],
  ["a tag in its address", `<c r="A<t>x</t>1"/>`],
  ["such an address behind a value with the end of a tag", `<c t=">" r="A<t>1"/>`],
])("a workbook with a cell that has %s is refused before it is read", async (_, cell) => {
  const content = Buffer.from(`<worksheet><sheetData>${cell}</sheetData></worksheet>`);
  const sheet = [entryHeader("xl/worksheets/sheet1.xml"), deflateRawSync(content)];
  const path = await fileWith(
    "far.xlsx",
    Buffer.concat([entryHeader("a", "x"), deflateRawSync("x"), ...sheet]),
  );
  expect((await readManifest(path)).problems).toMatchObject([
    { message: "the workbook has a cell too far from its first one" },
  ]);
});

test("a text that looks like an address of a cell is no reason to refuse a workbook", async () => {
  const said = `a circle with r = "big", and <c r=`;
  const path = await workbook({
    Cups: [
      ["id", "prompt"],
      ["a", said],
    ],
  });
  expect(await readManifest(path)).toMatchObject({ problems: [], rows: [{ prompt: said }] });
});

test("a cell is not far because a piece of its sheet ends within its address", () => {
  const cells = `<row r="12"><c s="1" r="A12"/></row>`;
  for (let cut = 0; cut < cells.length; cut++) {
    const sheet = Buffer.from(" ".repeat(1_001_000 - cut) + cells);
    const entry = Buffer.concat([
      entryHeader("xl/worksheets/sheet1.xml"),
      deflateRawSync(sheet, { level: 1 }),
    ]);
    expect(measure(entry).large, `cut after ${cells.slice(0, cut)}`).toBeNull();
  }
});

test("a workbook of which a byte was lost on the way is refused, or read as it was", async () => {
  const path = await workbook({
    Cups: [
      ["id", "prompt"],
      ["a", "a red cup"],
    ],
  });
  const bytes = await readFile(path);
  const whole = await readManifest(path);
  let refused = 0;
  for (let at = 0; at < bytes.length; at += 37) {
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] ?? 0) ^ 0x55;
    await writeFile(path, damaged);
    const { rows, problems } = await readManifest(path);
    if (problems.length > 0) refused++;
    else expect(rows).toEqual(whole.rows);
  }
  expect(refused).toBeGreaterThan(10);

  await writeFile(path, Buffer.concat([bytes, Buffer.from([0, 1, 2, 3])]));
  expect((await readManifest(path)).rows).toEqual(whole.rows);

  const sum = bytes.indexOf("PK\x07\x08", 0, "latin1") + 4;
  bytes.writeUInt32LE(bytes.readUInt32LE(sum) ^ 1, sum);
  await writeFile(path, bytes);
  expect((await readManifest(path)).problems).toMatchObject([
    { message: "the workbook cannot be read", got: "a file that is damaged or not complete" },
  ]);
});

test("a workbook that was packed as a stream, without compression, is read", async () => {
  const { ZipFile } = await import("yazl");
  const path = await workbook({ Cups: [["id"], ["a"]] });
  const zip = new ZipFile();
  for (const { name, content } of entriesOf(await readFile(path)))
    zip.addReadStream(Readable.from([content]), name, { compress: false });
  zip.end();
  await writeFile(path, await buffer(zip.outputStream));
  expect(await readManifest(path)).toMatchObject({ problems: [], rows: [{ id: "a" }] });
});

/** What stands before the packed content of a file in a zip. Its sizes are left out, as a zip may. */
function entryHeader(name: string, content = ""): Buffer {
  const header = Buffer.alloc(30);
  header.write("PK\x03\x04", "latin1");
  header.writeUInt16LE(8, 8);
  header.writeUInt32LE(crc32(content), 14);
  header.writeUInt16LE(name.length, 26);
  return Buffer.concat([header, Buffer.from(name)]);
}
