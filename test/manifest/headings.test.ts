import { writeFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import writeWorkbook, { type SheetData } from "write-excel-file/node";
import { digestOf } from "../../src/core/problem.js";
import { problemsText } from "../../src/report/problem-text.js";
import { fileWith } from "./folder.js";
import { readManifest } from "./read.js";

/** People write headings and totals between the rows of a sheet: they are one finding, and one flag leaves them out. */

async function told(path: string): Promise<string> {
  const { problems } = await readManifest(path);
  return problemsText(digestOf(problems), path.slice(0, path.lastIndexOf("/")));
}

const csv = `id,model,prompt,credits
Kitchen,,,
cup,plain-image,a cup,2
jar,plain-image,a jar,2
GARDEN
pot,plain-image,a pot,2
id,model,prompt,credits
pan,plain-image,a pan,2
Total,,,8
,,,8
`;

async function workbook(): Promise<string> {
  const wide = (text: string) => [{ value: text, columnSpan: 4 }, null, null, null];
  const data: SheetData = [
    ["id", "model", "prompt", "credits"],
    wide("Kitchen"),
    ["cup", "plain-image", "a cup", 2],
    wide("Garden"),
    ["pot", "plain-image", "a pot", 2],
    ["Grand total", null, null, 4],
  ];
  return fileWith("set.xlsx", await writeWorkbook(data).toBuffer());
}

describe("headings and totals", () => {
  test("of a CSV are one finding", async () => {
    expect(await told(await fileWith("set.csv", csv))).toBe(
      "set.csv: rows 2, 5 and 7 look like headings, and rows 9 and 10 like totals; --skip-headings leaves out just these",
    );
  });

  test("of a workbook, merged over the row, are one finding", async () => {
    expect(await told(await workbook())).toBe(
      "set.xlsx: rows 2 and 4 look like headings, and row 6 like a total; --skip-headings leaves out just these",
    );
  });

  test.each([
    ["a CSV", () => fileWith("set.csv", csv), ["cup", "jar", "pot", "pan"]],
    ["a workbook", workbook, ["cup", "pot"]],
  ])("of %s are left out by one flag, which names them", async (_name, file, ids) => {
    const { rows, problems, notes } = await readManifest(await file(), { skipHeadings: true });
    expect(problems).toEqual([]);
    expect(rows.map(({ id }) => id)).toEqual(ids);
    expect(notes.filter((note) => note.endsWith("they are left out"))).toHaveLength(1);
  });

  test("are what is left of a sheet without any row", async () => {
    const path = await fileWith("set.csv", "id,model,prompt\nKitchen,,\nTotal,,\n");
    expect((await readManifest(path, { skipHeadings: true })).problems).toMatchObject([
      { message: "the manifest has no rows" },
    ]);
  });

  test("in another language, with a template for the prompt", async () => {
    const path = await fileWith(
      "set.csv",
      "id;model;product;price\nKüche;;;\ncup;plain-image;Tasse;3,50 €\nSumme;;;3,50 €\n",
    );
    const defaults = { prompt: "a {{product}}" };
    expect((await readManifest(path, { defaults, skipHeadings: true })).rows).toMatchObject([{ id: "cup" }]);
  });
});

describe("what is not a heading", () => {
  const defaults = { model: "plain-image", prompt: "a cup" };

  test("is a row that can be made, whatever it looks like: no flag leaves it out", async () => {
    const path = await fileWith("set.csv", "id,model,prompt,size\nKitchen,,,\nTotal,,,8\n7,,,\n");
    const { rows, problems } = await readManifest(path, { defaults, skipHeadings: true });
    expect(problems).toEqual([]);
    expect(rows.map(({ id }) => id)).toEqual(["Kitchen", "Total", "7"]);
  });

  test.each([
    ["a prompt whose model was forgotten", "id,model,prompt\n,,a cup\n"],
    ["a row that is numbered and not filled in", "id,model,prompt\n7,,\n"],
    ["a row with a model and no prompt", "id,model,prompt\ncup,plain-image,\n"],
    ["a row that is separated in another way", "id;model;prompt\ncup,plain-image,a cup\n"],
  ])("is %s: it stays with its own problem, or none", async (_name, text) => {
    const { rows, problems } = await readManifest(await fileWith("set.csv", text), { skipHeadings: true });
    expect(problems.every(({ aside }) => aside === undefined)).toBe(true);
    expect(rows.length + problems.length).toBe(1);
  });

  test("is a row whose model is merged with the rows above it", async () => {
    const data: SheetData = [
      ["id", "model", "prompt"],
      ["cup", { value: "plain-image", rowSpan: 2 }, "a cup"],
      ["jar", null, null],
    ];
    const path = await fileWith("set.xlsx", await writeWorkbook(data).toBuffer());
    const { problems } = await readManifest(path, { defaults, skipHeadings: true });
    expect(problems).toMatchObject([{ place: { row: 3, column: "model" } }]);
  });

  test("hides no mistake in the job's own texts: a prompt file outside the folder", async () => {
    const sheet = await fileWith("r.csv", "id\na\nb\n");
    const job = sheet.replace(/r\.csv$/, "job.yaml");
    await writeFile(job, "rows: r.csv\ndefaults: { model: plain-image, prompt: '@../x.txt' }\n");
    expect(await told(job)).toMatch(
      /^job\.yaml:2:\d+, .*column prompt: the prompt file cannot be used: it lies outside the manifest's folder; .* got \.\.\/x\.txt$/,
    );
  });

  test("is one that is left out alone in good English", async () => {
    const path = await fileWith("set.csv", "id,model,prompt\nKitchen,,\ncup,plain-image,a cup\n");
    expect(await told(path)).toBe("set.csv: row 2 looks like a heading; --skip-headings leaves it out");
  });

  test("hides no mistake of the job's own template", async () => {
    const path = await fileWith("set.csv", "id,model,product\nKitchen,,\ncup,plain-image,a cup\n");
    const { problems } = await readManifest(path, {
      defaults: { prompt: "a {{produkt}}" },
      skipHeadings: true,
    });
    expect(problems).toHaveLength(1);
    expect(problems[0]?.message).toContain("produkt");
  });
});
