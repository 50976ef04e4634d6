import { expect, test } from "vitest";
import { missingText } from "../../../src/upkeep/archive/sheet-rows.js";

test("P24: rows without a final file are a line each, whatever their ids and reasons have in them", () => {
  expect(missingText([])).toBeNull();
  const rows = [
    { row: 2, rowId: "a\n  row 9 (forged): made", reason: "failed: \u001b[2Jno\nanswer" },
    { row: 3, rowId: "", reason: "rejected" },
  ];
  const lines = missingText(rows)?.split("\n") ?? [];
  expect(lines).toHaveLength(3);
  expect([lines[0], lines[2]]).toEqual(["2 rows have no final file:", "  row 3: rejected"]);
  expect(lines.join("")).not.toContain("\u001b");
  const many = Array.from({ length: 12 }, (_, row) => ({ row, rowId: "", reason: "failed" }));
  expect(missingText(many)?.split("\n").at(-1)).toBe("  and 2 more");
});
