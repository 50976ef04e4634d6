import { describe, expect, test } from "vitest";
import { exportedColumns, exportTable, filledColumns } from "../../../src/manifest/shape/columns.js";

/** What the first version that was released exported. Never add a name here. */
const original = [
  "item",
  "file",
  "picked",
  "state",
  "reason",
  "credits",
  "task_id",
  "external_task_id",
  "evidence",
];

describe("the columns of an export", () => {
  test("came later unless the first version exported them", () => {
    const first = exportTable.flatMap(({ name, cameLater }) => (cameLater ? [] : [name]));
    expect(first, "mark a new column in exportTable with `cameLater: true`").toEqual(original);
  });

  test("are recognised in an export of the first version, of this one, and under a prefix", () => {
    expect(exportedColumns(["id", "prompt", ...original])).toEqual([...filledColumns]);
    expect(exportedColumns(["id", ...filledColumns])).toEqual([...filledColumns]);
    const prefixed = filledColumns.map((name) => `bulkgen_${name}`);
    expect(exportedColumns(["id", ...filledColumns, ...prefixed])).toEqual(prefixed);
  });

  test("are not those of a sheet that lacks one of the first", () => {
    for (const missing of original)
      expect(exportedColumns(filledColumns.filter((name) => name !== missing)), missing).toBeNull();
  });
});
