import { buffer } from "node:stream/consumers";
import { constants, deflateRawSync } from "node:zlib";
import { expect, test } from "vitest";
import writeWorkbook, { type SheetData } from "write-excel-file/node";
import { tooLarge } from "../../../src/manifest/formats/unpacked.js";
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
    'of the workbook the first sheet was read, "Cups"; --sheet names another (Bowls)',
  ]);
  expect((await readManifest(path, { sheet: "Bowl" })).problems).toMatchObject([
    { message: 'the workbook has no sheet "Bowl"', expected: "one of: Cups, Bowls", nearest: "Bowls" },
  ]);
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

test("a workbook is known by its bytes, whatever its name; a sheet of a CSV is refused", async () => {
  const path = await workbook({ Cups: [["id"], ["a"]] }, "set.csv");
  expect((await readManifest(path)).rows).toMatchObject([{ id: "a" }]);
  const csv = await fileWith("set.csv", "id\na\n");
  expect((await readManifest(csv, { sheet: "Cups" })).problems).toMatchObject([
    { message: "the file has no sheets to choose from", got: "--sheet Cups" },
  ]);
});

test("an .ods is refused with the menu entry that saves it as .xlsx", async () => {
  const { ZipFile } = await import("yazl");
  const zip = new ZipFile();
  const kind = Buffer.from("application/vnd.oasis.opendocument.spreadsheet");
  zip.addBuffer(kind, "mimetype", { compress: false });
  zip.end();
  const path = await fileWith("set.ods", await buffer(zip.outputStream));
  expect((await readManifest(path)).problems).toMatchObject([
    {
      message: "the file is an OpenDocument spreadsheet (.ods)",
      expected: expect.stringContaining("File > Save As"),
    },
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
  expect(tooLarge(workbookOf(megabytes * 1_000_000 + 1), ...limit)).toEqual({
    what: "the workbook is too large when it is unpacked",
    expected: `at most ${megabytes} MB`,
  });
  expect(tooLarge(workbookOf(1_000_000), 1_000_000)).toBeNull();
});

test.each([
  ["a row that no spreadsheet has", `<row r="99999999999"><c r="A99999999999"/></row>`],
  ["a column that no spreadsheet has", `<c r='ZZZZ2'/>`],
  ["more cells before it than fit", `<c s="1" r = "XFD1048576"/>`],
  ["an address that is written in another way", `<c r="A&#57;9999999"/>`],
])("a workbook with a cell that has %s is refused before it is read", async (_, cell) => {
  const content = Buffer.from(`<worksheet><sheetData>${cell}</sheetData></worksheet>`);
  const sheet = [entryHeader("xl/worksheets/sheet1.xml"), deflateRawSync(content)];
  const path = await fileWith("far.xlsx", Buffer.concat([entryHeader("a"), deflateRawSync("x"), ...sheet]));
  expect((await readManifest(path)).problems).toMatchObject([
    { message: "the workbook has a cell too far from its first one" },
  ]);
});

/** What stands before the packed content of a file in a zip. Its sizes are left out, as a zip may. */
function entryHeader(name: string): Buffer {
  const header = Buffer.alloc(30);
  header.write("PK\x03\x04", "latin1");
  header.writeUInt16LE(8, 8);
  header.writeUInt16LE(name.length, 26);
  return Buffer.concat([header, Buffer.from(name)]);
}
