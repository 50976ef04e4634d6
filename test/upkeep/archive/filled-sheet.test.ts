import { parse } from "csv-parse/sync";
import { describe, expect, test } from "vitest";
import { credits } from "../../../src/core/money.js";
import { encodeSheet, SheetTooLarge } from "../../../src/report/sheet-formats.js";
import {
  type FilledItem,
  type FilledSheet,
  failedManifest,
  filledSheet,
} from "../../../src/upkeep/archive/filled-sheet.js";
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
  state: "archived",
  reason: null,
  files: ["a-1.png", "a-2.png"],
  picked: true,
  credits: credits(4.5),
  taskId: "t",
  externalTaskId: "x",
  evidence: [],
};

describe("a filled sheet", () => {
  test("has the team's columns in their order, then ours", async () => {
    const lines = [
      { cells: { id: "a", note: "n" }, item: made, reason: null },
      { cells: { id: "b" }, item: null, reason: "the row has too few cells" },
    ];
    expect(await read(filledSheet(["note", "id"], lines))).toEqual({
      columns: [
        "note",
        "id",
        "item",
        "file",
        "picked",
        "state",
        "reason",
        "credits",
        "task_id",
        "external_task_id",
        "evidence",
      ],
      lines: [
        ["n", "a", "a", "a-1.png | a-2.png", "yes", "archived", null, 4.5, "t", "x", null],
        [null, "b", null, null, null, "not made", "the row has too few cells", null, null, null, null],
      ],
    });
  });

  test("leaves a column of theirs alone that is called like one of ours", async () => {
    const cells = { id: "a", State: "Ohio", file: "theirs" };
    const sheet = filledSheet(["id", "State", "file"], [{ cells, item: made, reason: null }]);
    const { columns, lines } = await read(sheet);
    expect(columns.slice(0, 5)).toEqual(["id", "State", "file", "item", "bulkgen_file"]);
    expect(lines[0]?.slice(0, 3)).toEqual(["a", "Ohio", "theirs"]);
  });

  test("that is exported again is filled in again, without a second set of columns", () => {
    const once = filledSheet(["id", "prompt"], [{ cells: { id: "a" }, item: made, reason: null }]);
    expect(filledSheet(once.columns, []).columns).toEqual(once.columns);
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
