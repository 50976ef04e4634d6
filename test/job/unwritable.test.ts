import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { prepareOutFolder } from "../../src/job/open.js";
import { madeWritable } from "../../src/job/unwritable.js";

test.each([
  ["EACCES", "make it writable"],
  ["EROFS", "make it writable"],
  ["ENOSPC", "free some space for it"],
  ["EDQUOT", "free some space for it"],
])("what to do about a folder that cannot be written depends on why: %s", (code, todo) => {
  expect(madeWritable(code, "it")).toBe(todo);
});

test("an output folder with a file in its way is told of, and what to do", () => {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-out-"));
  writeFileSync(join(folder, "taken"), "a file");
  expect(() => prepareOutFolder(join(folder, "taken", "outputs"))).toThrow(
    /\(ENOTDIR\)\. Nothing was sent\. To go on, see that no file lies in the way of it, or name another with --out/,
  );
});
