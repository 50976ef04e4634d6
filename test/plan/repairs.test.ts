import { expect, test } from "vitest";
import { openManifest } from "../../src/manifest/read.js";
import { fileWith } from "../manifest/folder.js";
import { readManifest } from "../manifest/read.js";
import { plan, planOf } from "./account.js";

const sheet = "id,model,prompt,params.aspect_ratio\na,paint,x,16:09\nb,paint,y,16:9\nc,paint,z,16:10\n";

test("what a spreadsheet made of an option is a problem that offers the repair, and nothing is applied", async () => {
  const { problems, items, notes } = await planOf(sheet);
  expect(problems).toMatchObject([
    { place: { row: 2, column: "params.aspect_ratio" }, got: "16:09", nearest: "16:9", repair: "16:9" },
    { place: { row: 4 }, got: "16:10" },
  ]);
  expect(problems[1]).not.toHaveProperty("repair");
  expect(items.map(({ rowId }) => rowId)).toEqual(["b"]);
  expect(notes).toEqual([]);
});

test("when it is asked for, the option is taken, told with its row, and paid as if it had been written so", async () => {
  const repaired = await planOf(sheet, { repair: true });
  expect(repaired.problems).toMatchObject([{ place: { row: 4 }, got: "16:10" }]);
  expect(repaired.notes).toEqual(['params.aspect_ratio: "16:09" was read as "16:9" (row 2)']);
  const right = await planOf(sheet.replace("16:09", "16:9"));
  expect(repaired.items.map(({ key }) => key)).toEqual(right.items.map(({ key }) => key));
});

test("a repeat of 2.0 is offered as 2, and taken when it is asked for", async () => {
  const path = await fileWith("sheet.csv", "id,model,prompt,repeat\na,paint,x,2.0\n");
  expect((await readManifest(path)).problems).toMatchObject([{ got: "2.0", repair: "2" }]);
  const { items, notes } = await plan(await openManifest(path, { repair: true }));
  expect(items).toHaveLength(2);
  expect(notes).toEqual(['repeat: "2.0" was read as "2" (row 2)']);
});
