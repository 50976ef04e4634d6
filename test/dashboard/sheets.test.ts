import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import writeWorkbook from "write-excel-file/node";
import { Sheets } from "../../src/dashboard/sheets.js";
import type { CellChange, DroppedSheet } from "../../src/documents/page.js";
import { openManifest } from "../../src/manifest/read.js";
import { newPlace } from "../e2e/command.js";

/** Sheets of an empty workspace. */
function workspace() {
  const { folder } = newPlace();
  const sheets = new Sheets(folder);
  return {
    sheets,
    write: (file: string, text: string) => writeFileSync(join(folder, file), text),
    read: (file: string) => readFileSync(join(folder, file), "utf8"),
    path: (file: string) => join(folder, file),
    drop: (text: string | Uint8Array, name = "set.csv") => sheets.drop(name, Buffer.from(text), true),
    /** Changes the sheet as a page does that has just read it. */
    change: (opened: DroppedSheet, ...changes: CellChange[]) =>
      sheets.change({ file: opened.file }, changes, opened.version),
    async rowsOf(file: string) {
      const { rows } = await sheets.rows({ file }, 0, 100);
      return rows.map(({ number, cells }) => [number, ...cells]);
    },
  };
}

const blueCup: CellChange = { row: 3, column: "prompt", value: "a blue cup" };

describe("a cell is changed, and everything else in the sheet stays", () => {
  test("empty rows, comments, titles and the job's name", async () => {
    const { drop, change, read, rowsOf, path } = workspace();
    const opened = await drop(
      '# job: autumn\nAutumn set,,\n\nid,model,prompt\n\ncup,plain-image,a cup\n# not yet: jar, bowl\nmug,plain-image,"a mug, red"\n',
    );
    expect(await rowsOf(opened.file)).toEqual([
      [6, "cup", "plain-image", "a cup"],
      [8, "mug", "plain-image", "a mug, red"],
    ]);
    const changed = await change(opened, { row: 6, column: "prompt", value: "a blue cup" });
    await change(changed, { row: 8, column: "prompt", value: "a green mug" });
    expect(await rowsOf(opened.file)).toEqual([
      [6, "cup", "plain-image", "a blue cup"],
      [8, "mug", "plain-image", "a green mug"],
    ]);
    expect((await openManifest(path(opened.file))).name).toBe("autumn");
    expect(read(opened.file)).toContain("# not yet: jar,bowl\n");
  });

  test("rows with too many or too few cells keep their problem", async () => {
    const { drop, change, read, sheets } = workspace();
    const opened = await drop("id,model,prompt\ncup,m,a cup, red\nmug,m,a mug\njar,m\n");
    const changed = await change(opened, { ...blueCup, row: 3 });
    expect(read(opened.file)).toBe("\ufeffid,model,prompt\ncup,m,a cup,red\nmug,m,a blue cup\njar,m\n");
    const wider = await change(changed, { row: 3, column: "priority", value: "5" });
    expect(wider.columns).toEqual(["id", "model", "prompt", "priority"]);
    // The stray cell has not become the priority of its row.
    expect(read(opened.file)).toBe(
      "\ufeffid,model,prompt,priority\ncup,m,a cup,,red\nmug,m,a blue cup,5\njar,m\n",
    );
    expect((await sheets.rows({ file: opened.file }, 0, 9)).rows).toHaveLength(1);
  });

  test("cells that hold a delimiter, a quote or a line end of any kind", async () => {
    const { write, rowsOf, sheets } = workspace();
    write("list.csv", 'sep=;\nprompt;note\n"a ""red"" cup, tall";"one\rtwo"\na mug;"three\r\nfour"\n');
    const opened = await sheets.open({ file: "list.csv" });
    const before = await rowsOf("list.csv");
    const changed = await sheets.change(
      { file: "list.csv" },
      [{ row: 3, column: "prompt", value: "a mug, green" }],
      opened.version,
    );
    expect(await rowsOf(changed.file)).toEqual([before[0], [3, "a mug, green", "three\r\nfour"]]);
  });

  test("what stands behind a quote that is never closed is not thrown away", async () => {
    const { drop, change, read } = workspace();
    const text = 'id,model,prompt\ncup,m,a cup\njar,m,"a jar\nmug,m,a mug\n';
    const opened = await drop(text);
    expect(opened).toMatchObject({ editable: false, rows: 1 });
    await expect(change(opened, { ...blueCup, row: 2 })).rejects.toThrow("is changed in an editor, not here");
    expect(read(opened.file)).toBe(text);
  });

  test("two columns of one name are changed in an editor", async () => {
    const { drop } = workspace();
    expect(await drop("id,prompt,prompt\ncup,a cup,a mug\n")).toMatchObject({ editable: false });
  });

  test("a workbook in which a cell shows more than the file says is changed in an editor", async () => {
    const { drop } = workspace();
    const data = [
      ["id", "model", "prompt"],
      ["cup", { value: "m", rowSpan: 2 }, "a cup"],
      ["mug", null, "a mug"],
    ];
    const bytes = await writeWorkbook([{ sheet: "Set", data: data as never }]).toBuffer();
    expect(await drop(bytes, "set.xlsx")).toMatchObject({ editable: false, trouble: null, rows: 2 });
  });

  test.each([
    ["an input", "id,model,image_url\ncup,m,photos/cup.png\n"],
    ["a prompt", "id,model,prompt\ncup,m,@prompts/cup.txt\n"],
  ])("a sheet of the user's own that names a file for %s, which its copy would not find", async (_, text) => {
    const { write, sheets, drop } = workspace();
    write("mine.csv", text);
    expect(await sheets.open({ file: "mine.csv" })).toMatchObject({ editable: false, trouble: null });
    // A sheet that is changed where it lies finds its files.
    expect(await drop(text)).toMatchObject({ editable: true });
  });

  test("a second copy of a sheet is of the same job, and is listed", async () => {
    const { write, sheets, path } = workspace();
    write("mine.csv", "id,model,prompt\ncup,m,a cup\n");
    const opened = await sheets.open({ file: "mine.csv" });
    const copies: string[] = [];
    for (const value of ["a red cup", "a blue cup"]) {
      const changes = [{ row: 2, column: "prompt", value }];
      copies.push((await sheets.change({ file: "mine.csv" }, changes, opened.version)).file);
    }
    expect(copies).toEqual(["sheets/mine.csv", "sheets/2/mine.csv"]);
    for (const copy of copies) expect((await openManifest(path(copy))).name).toBe("mine");
    expect(sheets.list([]).map(({ file }) => file)).toEqual(expect.arrayContaining(copies));
    // A copy is changed in its place.
    const second = await sheets.open({ file: "sheets/2/mine.csv" });
    const again = [{ row: 2, column: "prompt", value: "a green cup" }];
    expect((await sheets.change({ file: second.file }, again, second.version)).file).toBe(second.file);
  });

  test("a file whose ending is in capitals", async () => {
    const { write, sheets } = workspace();
    write("SET.CSV", "id,prompt\ncup,a cup\n");
    expect(await sheets.open({ file: "SET.CSV" })).toMatchObject({ editable: true });
  });
});

describe("nobody's change is overwritten", () => {
  test("a sheet that changed since the page read it is not changed", async () => {
    const { drop, change, read, write } = workspace();
    const opened = await drop("id,model,prompt\ncup,m,a cup\nmug,m,a mug\n");
    const others = "id,model,prompt\nnew,m,a vase\ncup,m,a cup\nmug,m,a mug\n";
    write(opened.file, others);
    await expect(change(opened, blueCup)).rejects.toThrow(
      "sheets/set.csv has changed since this page read it, so your change was not saved",
    );
    expect(read(opened.file)).toBe(others);
  });

  test("of two changes at once, of a sheet as both know it, one is made and one refused", async () => {
    const { drop, change, read } = workspace();
    const opened = await drop("id,model,prompt\ncup,m,a cup\nmug,m,a mug\n");
    const both = await Promise.allSettled([
      change(opened, blueCup),
      change(opened, { row: 2, column: "prompt", value: "a red cup" }),
    ]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(read(opened.file)).toBe("\ufeffid,model,prompt\ncup,m,a cup\nmug,m,a blue cup\n");
  });

  test("a dropped sheet replaces another one of its name only on request", async () => {
    const { sheets, read } = workspace();
    const [one, other] = [Buffer.from("id,prompt\ncup,a cup\n"), Buffer.from("id,prompt\ncup,a mug\n")];
    await sheets.drop("set.csv", one, false);
    await sheets.drop("set.csv", one, false);
    await expect(sheets.drop("set.csv", other, false)).rejects.toMatchObject({
      kind: "exists",
      message: "sheets/set.csv exists and is different",
    });
    expect(read("sheets/set.csv")).toBe(String(one));
    await sheets.drop("set.csv", other, true);
    expect(read("sheets/set.csv")).toBe(String(other));
  });
});
