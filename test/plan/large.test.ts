import { expect, test } from "vitest";
import { digestOf } from "../../src/core/problem.js";
import { bytesOf } from "../../src/manifest/formats/bytes.js";
import { manifestOf, openManifest, sourceOf } from "../../src/manifest/read.js";
import { problemsText } from "../../src/report/problem-text.js";
import { amount } from "../fuzz/amount.js";
import { fileWith } from "../manifest/folder.js";
import { plan, planOf } from "./account.js";

/** A sheet that is read in many pieces. */
async function large(header: string, count: number, row: (index: number) => string) {
  const lines = Array.from({ length: count }, (_, index) => row(index));
  const bytes = bytesOf(Buffer.from(`${header}\n${lines.join("\n")}\n`));
  const { source } = await sourceOf("large.csv", bytes, {});
  return manifestOf("large.csv", source, {});
}

const slow = { timeout: 120_000 };

test(
  "rows that lie far apart are held against each other: ids, outputs, and what they ask for",
  slow,
  async () => {
    const row = (index: number) => {
      if (index === 19_997) return "r5,paint,x other,";
      if (index === 19_998) return "last,paint,y,OUT-7";
      return `r${index},paint,${index === 19_999 ? "x 3" : `x ${index}`},out-${index}`;
    };
    const { items, problems, warnings } = await plan(await large("id,model,prompt,output", 20_000, row));
    expect(problems.map(({ message }) => message)).toEqual([
      "rows 7 and 19999 have the same id",
      "rows 9 and 20000 want the same output",
    ]);
    expect(items).toHaveLength(19_998);
    expect(items.at(-1)).toMatchObject({ rowId: "r19999", occurrence: 2 });
    expect(warnings.filter(({ kind }) => kind === "identical_rows").map(({ message }) => message)).toEqual([
      expect.stringContaining("rows 5, 20001 are identical"),
    ]);
  },
);

test("what is reported of many equal rows does not grow with their number", slow, async () => {
  const made = await plan(await large("model,prompt", 3_000, (index) => `paint,x ${index % 1_500}`));
  expect(made.items).toHaveLength(3_000);
  expect(made.warnings.filter(({ kind }) => kind === "identical_rows")).toHaveLength(101);
  expect(made.warnings.at(-1)?.message).toMatch(/^1400 more groups of identical rows; /);
});

test("params that differ in each row stay with their row, however many there are", slow, async () => {
  const row = (index: number) => `r${index},paint,x,m${index % 4_000},${index % 2 === 0 ? "1:1" : "16:9"}`;
  const header = "id,model,prompt,params.mood,params.aspect_ratio";
  const { items, models } = await plan(await large(header, 5_000, row));
  const said = items.map(({ rowId, name, params }) => [rowId, name, params]);
  const params = (index: number) => ({
    mood: `m${index % 4_000}`,
    aspect_ratio: index % 2 === 0 ? "1:1" : "16:9",
  });
  expect(said).toEqual(Array.from({ length: 5_000 }, (_, n) => [`r${n}`, `r${n}`, params(n)]));
  expect(new Set(items.map(({ key }) => key)).size).toBe(5_000);
  expect(models).toMatchObject([{ model: "paint", items: 5_000, due: 5_000, credits: 20_000_000_000 }]);
});

test("a template in the last row of a large sheet is rendered like one in the first", slow, async () => {
  const row = (index: number) => `r${index},paint,${index === 9_999 ? "{{ id }} at night" : "x"} ${index}`;
  const { items } = await plan(await large("id,model,prompt", 10_000, row));
  expect([items[0]?.prompt, items.at(-1)?.prompt]).toEqual(["x 0", "r9999 at night 9999"]);
});

test("very many wrong rows are counted and the first hundred mistakes told, in the order of the sheet", {
  ...slow,
  tags: ["fuzz"],
}, async () => {
  const rows = amount(10_000, 130_000);
  const { problems } = await plan(
    await large("id,model,prompt", rows, (index) => `r${index},nobody${index},x`),
  );
  const digest = digestOf(problems);
  const { reported, count } = digest;
  expect(count).toBe(rows);
  const lines = problemsText(digest, "").split("\n");
  expect(lines).toHaveLength(101);
  expect(lines[100]).toContain(`and ${rows - 100} more`);
  expect(reported.map(({ problem }) => problem.place.row)).toEqual(
    Array.from({ length: 100 }, (_, n) => n + 2),
  );
});

test("a chain of ten thousand items is planned", async () => {
  const count = 10_000;
  const rows = Array.from({ length: count }, (_, index) => `i${index},extend,,@i${index - 1}`);
  rows[0] = "i0,extend,,https://files.example/first.mp4";
  const head = "id,model,prompt,video_url\n";
  const made = await planOf(`${head}${rows.toReversed().join("\n")}\n`);
  expect(made.items).toHaveLength(count);
  expect(new Set(made.items.map(({ key }) => key)).size).toBe(count);
});

test("a circle of a thousand items is told by its first ones", async () => {
  const rows = Array.from({ length: 1_000 }, (_, index) => `i${index},extend,,@i${(index + 999) % 1_000}`);
  const circle = await planOf(`id,model,prompt,video_url\n${rows.join("\n")}\n`);
  expect(circle.problems).toHaveLength(1_000);
  expect(circle.problems[0]?.message).toContain("992 more");
});

test("ten thousand steps of one row are a chain", async () => {
  const steps = Array.from({ length: 10_000 }, (_, index) => ({
    name: `s${index}`,
    model: "extend",
    video_url: index === 0 ? "https://files.example/first.mp4" : `@s${index - 1}`,
  }));
  const file = await fileWith("job.json", JSON.stringify({ rows: [{ id: "a" }], steps }));
  const made = await plan(await openManifest(file));
  expect(made.items).toHaveLength(10_000);
  expect(made.items.at(-1)?.parents).toEqual([
    { field: "video_url", key: made.items.at(-2)?.key, output: 1 },
  ]);
});
