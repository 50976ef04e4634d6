import { parse } from "csv-parse/sync";
import { describe, expect, test } from "vitest";
import { credits } from "../../../src/core/money.js";
import { type FilledItem, failedManifest, filledSheet } from "../../../src/job/archive/export.js";
import { encodeSheet, SheetTooLarge } from "../../../src/report/sheet-formats.js";
import { newItem } from "../../store/item-fixture.js";

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
  test("has the team's columns in their order, then ours", () => {
    const lines = [
      { cells: { id: "a", note: "n" }, item: made, reason: null },
      { cells: { id: "b" }, item: null, reason: "the row has too few cells" },
    ];
    expect(filledSheet(["note", "id"], lines)).toEqual({
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

  test("leaves a column of theirs alone that is called like one of ours", () => {
    const { columns, lines } = filledSheet(
      ["id", "State", "file"],
      [{ cells: { id: "a", State: "Ohio", file: "theirs" }, item: made, reason: null }],
    );
    expect(columns.slice(0, 5)).toEqual(["id", "State", "file", "item", "bulkgen_file"]);
    expect(lines[0]?.slice(0, 3)).toEqual(["a", "Ohio", "theirs"]);
  });

  test("that is exported again is filled in again, without a second set of columns", () => {
    const once = filledSheet(["id", "prompt"], [{ cells: { id: "a" }, item: made, reason: null }]);
    expect(filledSheet(once.columns, []).columns).toEqual(once.columns);
  });
});

describe("a manifest of what failed", () => {
  test("says in each row what defaults made of it, once for each copy, and why it failed", () => {
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
    expect(failedManifest(columns, [{ item, reason: "no" }])).toEqual({
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
    const bytes = Buffer.from(await encodeSheet(sheet, "csv"));
    expect([...bytes.subarray(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
    expect(parse(bytes, { bom: true })).toEqual([
      ["id", "'=cmd", "__proto__"],
      ["a", "'=1+1", 'ö\n"x"'],
      ["", "-5", ""],
    ]);
  });

  test("JSON and JSONL have an object a line, whatever a column is called", async () => {
    const json = JSON.parse(Buffer.from(await encodeSheet(sheet, "json")).toString());
    expect(Object.entries(json[0])).toEqual([
      ["id", "a"],
      ["=cmd", "=1+1"],
      ["__proto__", 'ö\n"x"'],
    ]);
    const lines = Buffer.from(await encodeSheet(sheet, "jsonl"))
      .toString()
      .trimEnd()
      .split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual(json);
  });

  test("a workbook refuses content that it would truncate", async () => {
    const long = { columns: ["id"], lines: [["x".repeat(32_768)]] };
    await expect(encodeSheet(long, "xlsx")).rejects.toThrow(SheetTooLarge);
    await expect(encodeSheet(long, "xlsx")).rejects.toThrow(
      "can have at most 32767 characters, and one has 32768; use csv",
    );
    const controls = { columns: ["id"], lines: [["a\u0000\u001bb"]] };
    expect((await encodeSheet(controls, "xlsx")).length).toBeGreaterThan(0);
  });
});
