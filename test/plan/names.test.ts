import { expect, test } from "vitest";
import { planOf } from "./account.js";

const sheet = (...names: string[]) =>
  ["model,prompt,output", ...names.map((name, index) => `paint,picture ${index},"${name}"`), ""].join("\n");

test("a name that some system forbids, or that is too long, is told with what its file will be called", async () => {
  const long = "x".repeat(400);
  const { problems, notes } = await planOf(
    sheet("a?b", "con", "16:9 mug", long, "cup.", "plain name", "Tasse grün"),
  );
  expect(problems).toEqual([]);
  expect(notes).toEqual([
    '"a?b" is saved as "a-b" (row 2)',
    '"con" is saved as "con-" (row 3)',
    '"16:9 mug" is saved as "16x9 mug" (row 4)',
    `"${"x".repeat(60)}…" is saved as "${"x".repeat(60)}…" (row 5)`,
    '"cup." is saved as "cup" (row 6)',
  ]);
});

test("names that become one once they are safe are found before anything is paid", async () => {
  const { problems } = await planOf(sheet("cup/a?b", "cup/A-b"));
  expect(problems).toMatchObject([
    { place: { row: 3, column: "output" }, message: "rows 2 and 3 want the same output", got: "cup/A-b" },
  ]);
});
