import { parse } from "csv-parse/sync";
import { describe, expect, test } from "vitest";
import { credits } from "../../../src/core/money.js";
import { encodeSheet, SheetTooLarge } from "../../../src/report/sheet-formats.js";
import {
  chosenSheet,
  columnNamed,
  type FilledItem,
  type FilledLine,
  type FilledSheet,
  failedManifest,
  filledSheet,
} from "../../../src/upkeep/archive/filled-sheet.js";
import { sheetOfRows } from "../../../src/upkeep/archive/sheet-of-rows.js";
import { newItem } from "../../store/item-fixture.js";

/** A sheet with its lines read. */
async function read({ lines, ...sheet }: FilledSheet) {
  return { ...sheet, lines: await all(lines) };
}

async function all<Part>(parts: Iterable<Part> | AsyncIterable<Part>): Promise<Part[]> {
  const found: Part[] = [];
  for await (const part of parts) found.push(part);
  return found;
}

async function encoded(...given: Parameters<typeof encodeSheet>): Promise<Buffer> {
  return Buffer.concat((await all(encodeSheet(...given))).map((piece) => Buffer.from(piece)));
}

const made: FilledItem = {
  rowId: "a",
  id: "a",
  state: "archived",
  reason: null,
  model: "paint",
  prompt: "a cup",
  params: { seed: "7" },
  step: null,
  files: [
    { name: "a-1.png", bytes: 10, sha256: "0a", mime: "image/png", width: 4, height: 3 },
    { name: "a-2.png", bytes: 20, sha256: "0b", mime: "image/png", width: 8, height: 6 },
  ],
  picked: true,
  approval: null,
  credits: credits(4.5),
  taskId: "t",
  externalTaskId: "x",
  evidence: [],
};

describe("a filled sheet", () => {
  test("has the team's columns in their order, then ours", async () => {
    const lines = [
      { number: 2, cells: { id: "a", note: "n" }, item: made, reason: null, copy: 1 },
      { number: 2, cells: { id: "b" }, item: null, reason: "the row has too few cells", copy: 1 },
    ];
    expect(await read(filledSheet(["note", "id"], lines))).toEqual({
      columns: [
        "note",
        "id",
        "item",
        "file",
        "picked",
        "approval",
        "state",
        "reason",
        "credits",
        "task_id",
        "external_task_id",
        "evidence",
      ],
      lines: [
        ["n", "a", "a", "a-1.png | a-2.png", "yes", null, "archived", null, 4.5, "t", "x", null],
        [null, "b", null, null, null, null, "not made", "the row has too few cells", null, null, null, null],
      ],
    });
  });

  test("leaves a column of theirs alone that is called like one of ours", async () => {
    const cells = { id: "a", State: "Ohio", file: "theirs" };
    const sheet = filledSheet(
      ["id", "State", "file"],
      [{ number: 2, cells, item: made, reason: null, copy: 1 }],
    );
    const { columns, lines } = await read(sheet);
    expect(columns.slice(0, 5)).toEqual(["id", "State", "file", "item", "bulkgen_file"]);
    expect(lines[0]?.slice(0, 3)).toEqual(["a", "Ohio", "theirs"]);
  });

  test("that is exported again is filled in again, without a second set of columns", () => {
    const once = filledSheet(
      ["id", "prompt"],
      [{ number: 2, cells: { id: "a" }, item: made, reason: null, copy: 1 }],
    );
    expect(filledSheet(once.columns, []).columns).toEqual(once.columns);
  });
});

describe("chosen columns", () => {
  const columns = ["id", "prompt", "width"];
  const lines: [FilledLine, FilledLine] = [
    { number: 2, cells: { id: "a", prompt: "a {{ it }}", width: "wide" }, item: made, reason: null, copy: 1 },
    { number: 3, cells: { id: "b", prompt: "a bowl" }, item: null, reason: "not selected", copy: 1 },
  ];
  const chosen = (...names: string[]) =>
    names.map((name) => {
      const found = columnNamed(name, columns, new Map());
      if (found === undefined) throw new Error(`there is no column ${name}`);
      return { ...found, name, written: name };
    });

  test("say what was sent, and what the files are", async () => {
    const names = [
      "prompt",
      "model",
      "params.seed",
      "seed",
      "mime",
      "bytes",
      "sha256",
      "height",
      "Params.Seed",
    ];
    expect((await read(chosenSheet(chosen(...names), lines))).lines).toEqual([
      ["a cup", "paint", "7", "7", "image/png | image/png", "10 | 20", "0a | 0b", "3 | 6", null],
      ["a bowl", null, null, null, null, null, null, null, null],
    ]);
  });

  test("a column of the sheet wins over a fact of the same name, which has a prefix then", async () => {
    expect((await read(chosenSheet(chosen("width", "bulkgen_width"), lines))).lines[0]).toEqual([
      "wide",
      "4 | 8",
    ]);
    expect(columnNamed("heigth", columns, new Map())).toBeUndefined();
  });

  test("with one line a row, its files stand side by side", async () => {
    const failed = { ...made, rowId: "a-x", state: "failed" as const, files: [] };
    const one = { ...made, rowId: "a-y", files: made.files.slice(0, 1), prompt: "another" };
    const [first, last] = lines;
    const all = [first, { ...first, item: failed }, { ...first, item: one }, last];
    expect(await read(await sheetOfRows(chosen("id", "file", "prompt"), all))).toEqual({
      columns: ["id", "file_1", "file_2", "file_3", "prompt_1", "prompt_2", "prompt_3"],
      lines: [
        ["a", "a-1.png", "a-2.png", "a-1.png", "a cup", "a cup", "another"],
        ["b", null, null, null, "a bowl", null, null],
      ],
    });
  });

  test("with one line a row, a number means the same combination, copy and output in every row", async () => {
    const line = (number: number, view: string, copy: number | null, files: number): FilledLine => ({
      number,
      cells: { id: `r${number}`, view },
      item: {
        ...made,
        rowId: `${number}-${view}-${copy}`,
        state: files === 0 ? "failed" : "archived",
        files: made.files.slice(0, files).map((file) => ({ ...file, name: `${number}-${view}-${copy}` })),
      },
      reason: null,
      copy,
    });
    const all = [
      // Without its front, its first side and its top.
      line(2, "side", 2, 1),
      line(3, "front", 1, 0),
      line(3, "side", 1, 1),
      line(3, "side", 2, 1),
      line(4, "front", 1, 2),
      line(4, "side", 1, 1),
      line(5, "side", 1, 1),
      line(5, "top", 1, 1),
    ];
    const names = ["id", "view", "file", "state"];
    const fromSheet = names.map((name) => {
      const found = columnNamed(name, ["id", "view"], new Map());
      if (found === undefined) throw new Error(`there is no column ${name}`);
      return { ...found, name, written: name };
    });
    const { columns: written, lines: rows } = await read(await sheetOfRows(fromSheet, all));
    const five = (name: string) => [1, 2, 3, 4, 5].map((number) => `${name}_${number}`);
    expect(written).toEqual(["id", ...five("view"), ...five("file"), ...five("state")]);
    const no = null;
    expect(rows.map((row) => row.slice(6, 11))).toEqual([
      [no, no, no, no, "2-side-2"],
      [no, no, "3-side-1", no, "3-side-2"],
      ["4-front-1", "4-front-1", "4-side-1", no, no],
      [no, no, "5-side-1", "5-top-1", no],
    ]);
    expect(rows[1]?.slice(1, 6)).toEqual(["front", no, "side", no, "side"]);
    expect(rows[1]?.slice(11)).toEqual(["failed", no, "archived", no, "archived"]);
    // Lines that do not say how they were combined stand as they come.
    const unknown = [line(2, "side", null, 1), line(3, "front", null, 1), line(3, "side", null, 1)];
    expect((await read(await sheetOfRows(fromSheet.slice(2, 3), unknown))).lines).toEqual([
      ["2-side-null", no],
      ["3-front-null", "3-side-null"],
    ]);
  });
});

describe("a manifest of what failed", () => {
  test("says in each row what defaults made of it, once for each copy, and why it failed", async () => {
    const item = newItem("a-2", {
      name: "cups/a-2",
      params: { size: "1:1" },
      cells: [
        ["id", "a"],
        ["repeat", "2"],
        ["product", "Cup"],
        ["params.old", "left out"],
      ],
    });
    const columns = ["id", "product", "repeat", "params.old"];
    expect(await read(await failedManifest(columns, [{ item, reason: "no" }]))).toEqual({
      columns: ["id", "product", "params.old", "model", "prompt", "params.size", "output", "reason"],
      lines: [["a-2", "Cup", null, "picture", "a a-2", "1:1", "cups/a-2", "no"]],
    });
  });
});

describe("formats", () => {
  const sheet = {
    columns: ["id", "=cmd", "__proto__"],
    lines: [
      ["a", "=1+1", 'ö\n"x"'],
      [null, "-5", null],
    ],
  };

  test("CSV opens in a spreadsheet: a byte order mark, quotes, and nothing that is run (P24)", async () => {
    const bytes = await encoded(sheet, "csv");
    expect([...bytes.subarray(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
    expect(parse(bytes, { bom: true })).toEqual([
      ["id", "'=cmd", "__proto__"],
      ["a", "'=1+1", 'ö\n"x"'],
      ["", "-5", ""],
    ]);
  });

  test("JSON and JSONL have an object a line, whatever a column is called", async () => {
    const json = JSON.parse((await encoded(sheet, "json")).toString());
    expect(Object.entries(json[0])).toEqual([
      ["id", "a"],
      ["=cmd", "=1+1"],
      ["__proto__", 'ö\n"x"'],
    ]);
    const lines = (await encoded(sheet, "jsonl")).toString().trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual(json);
  });

  test("many lines come in pieces, which are together what they would be at once", async () => {
    const lines = Array.from({ length: 2_500 }, (_, at) => [`row ${at}`, at, null]);
    const many = { columns: ["id", "n", "no"], lines };
    const objects = lines.map(([id, n, no]) => ({ id, n, no }));
    const csv = lines.map(([id, n]) => `${id},${n},\r\n`);
    expect((await encoded(many, "csv")).toString()).toBe(`\ufeffid,n,no\r\n${csv.join("")}`);
    expect((await encoded(many, "json")).toString()).toBe(`${JSON.stringify(objects, null, 2)}\n`);
    const jsonl = objects.map((object) => `${JSON.stringify(object)}\n`);
    expect((await encoded(many, "jsonl")).toString()).toBe(jsonl.join(""));
    for (const format of ["csv", "json", "jsonl"] as const)
      expect((await all(encodeSheet(many, format))).length).toBeGreaterThan(2);
    expect((await encoded({ ...many, lines: [] }, "json")).toString()).toBe("[]\n");
  });

  test("a workbook refuses content that it would truncate", async () => {
    const long = { columns: ["id"], lines: [["x".repeat(32_768)]] };
    await expect(encoded(long, "xlsx")).rejects.toThrow(SheetTooLarge);
    await expect(encoded(long, "xlsx")).rejects.toThrow(
      "can have at most 32767 characters, and one has 32768; use csv",
    );
    const controls = { columns: ["id"], lines: [["a\u0000\u001bb"]] };
    expect((await encoded(controls, "xlsx")).length).toBeGreaterThan(0);
  });
});
