import fc from "fast-check";
import { expect, test } from "vitest";
import type { Row } from "../../src/manifest/shape/manifest.js";
import { ItemNames } from "../../src/plan/names.js";
import { amount } from "../fuzz/amount.js";
import { planOf } from "./account.js";

const sheet = (...names: string[]) =>
  ["model,prompt,output", ...names.map((name, index) => `paint,picture ${index},"${name}"`), ""].join("\n");

test("a name that is too long or that some system forbids is reported with the file name used instead", async () => {
  const long = "x".repeat(400);
  const { problems, notes } = await planOf(
    sheet("a?b", "con", "16:9 mug", long, "cup.", "plain name", "Tasse grün"),
  );
  expect(problems).toEqual([]);
  expect(notes).toEqual([
    '"a?b" is saved as "a-b" (row 2)',
    '"con" is saved as "con-" (row 3)',
    '"16:9 mug" is saved as "16x9 mug" (row 4)',
    `"${"x".repeat(59)}…" is saved as "${"x".repeat(59)}…" (row 5)`,
    '"cup." is saved as "cup" (row 6)',
  ]);
});

test("names that become one once they are safe are found before anything is paid", async () => {
  const { problems } = await planOf(sheet("cup/a?b", "cup/A-b"));
  expect(problems).toMatchObject([
    { place: { row: 3, column: "output" }, message: "rows 2 and 3 want the same output", got: "cup/A-b" },
  ]);
});

test("names that are alike only because they are cut say so", async () => {
  const long = "x".repeat(300);
  const { problems } = await planOf(sheet(`${long}-a`, `${long}-b`));
  expect(problems).toMatchObject([
    {
      message: "rows 2 and 3 want the same output: each part of a name is cut after 120 bytes",
      expected: "names that differ within their first 120 bytes (ignoring case)",
    },
  ]);
});

/** What is found by two plain lists, one of ids and one of names without capitals. */
function byLists(rows: readonly Row[]): string[][] {
  const ids = new Map<string, { row: number; copy: number }>();
  const names = new Map<string, number>();
  return rows.map((row) => {
    const first = row.id === null ? undefined : ids.get(row.id);
    const told = first?.copy === 1 ? [`rows ${first.row} and ${row.number} have the same id`] : [];
    let clash: string | undefined;
    for (let copy = 1; copy <= row.repeat; copy++) {
      const copied = (text: string | null) => (text === null || copy === 1 ? text : `${text}-${copy}`);
      const [id, name] = [copied(row.id), copied(row.output ?? row.id)];
      const taken = id === null ? undefined : ids.get(id);
      if (id !== null && taken === undefined) ids.set(id, { row: row.number, copy });
      if (taken && told.length === 0) clash ??= clashing(taken.row, row.number, "id");
      if (name === null) continue;
      const other = names.get(name.toLowerCase());
      if (other === undefined) names.set(name.toLowerCase(), row.number);
      else if (told.length === 0 || row.output !== null)
        clash ??= clashing(other, row.number, row.output === null ? "id" : "output");
    }
    return clash === undefined ? told : [...told, clash];
  });
}

function clashing(one: number, other: number, column: "id" | "output"): string {
  const whose = one === other ? `several items of row ${other}` : `rows ${one} and ${other}`;
  return `${whose} ${column === "id" ? "give their items the same file name" : "want the same output"}`;
}

test("ids and names that are taken are found in any mixture of rows", { tags: ["fuzz"] }, () => {
  const text = fc.constantFrom(
    "studio",
    "Studio",
    "studio-2",
    "STUDIO-2",
    "studio-3",
    "garden",
    "a b",
    "cup",
  );
  const rows = fc.array(
    fc.record({
      id: fc.option(text, { freq: 5 }),
      output: fc.option(text, { freq: 1 }),
      repeat: fc.constantFrom(1, 1, 1, 1, 2, 3),
    }),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(rows, (made) => {
      const all = made.map(
        (row, index) =>
          ({ ...row, number: index + 2, place: { file: "a.csv", row: index + 2 }, marks: {} }) as Row,
      );
      const names = new ItemNames();
      expect(all.map((row) => names.check(row).map(({ message }) => message))).toEqual(byLists(all));
    }),
    { numRuns: amount(500, 3_000) },
  );
});

test("a problem of names says whose they are, what is expected, and what was written", async () => {
  const problems = async (head: string, ...rows: string[]) =>
    (
      await planOf(`model,prompt,${head}\n${rows.map((row, n) => `paint,${n},${row}`).join("\n")}\n`)
    ).problems.map(({ place, message, expected, got }) => [place.column, message, expected, got]);
  expect(await problems("id", "cup", "cup")).toEqual([
    ["id", "rows 2 and 3 have the same id", "a unique id, or none", "cup"],
  ]);
  expect(await problems("id", "garden-cup", "garden-cup")).toEqual([
    ["id", "rows 2 and 3 have the same id", "a unique id, or none", "garden-cup"],
  ]);
  const different = "a different name for each item (ignoring case)";
  expect(await problems("id", "garden-cup", "Garden-Cup")).toEqual([
    ["id", "rows 2 and 3 give their items the same file name", different, "Garden-Cup"],
  ]);
  expect(await problems("output", "cups/one", "cups/One")).toEqual([
    ["output", "rows 2 and 3 want the same output", different, "cups/One"],
  ]);
  expect(await problems("output", "../cup")).toEqual([
    [
      "output",
      "the output path leads outside the output folder",
      "a file name, or folders and a file name inside the output folder",
      "../cup",
    ],
  ]);
});

test.each(["a..b", "a/..b/c", "..", "c", "cd:x", "1:/x"])(
  "an output of %s leads outside only if it has a step up, or begins at a root",
  async (output) => {
    const { problems } = await planOf(sheet(output));
    expect(problems).toHaveLength(output === ".." ? 1 : 0);
  },
);
