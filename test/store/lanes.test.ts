import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openLanes } from "../../src/store/lanes.js";

test("P3: an account has as many lanes as it has, whoever takes them", () => {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-lanes-"));
  const [one, other] = [openLanes(folder, 2), openLanes(folder, 2)];
  const first = one.take();
  expect(first).not.toBeNull();
  const second = other.take();
  expect(second).not.toBeNull();
  expect([one.take(), other.take()]).toEqual([null, null]);
  first?.release();
  const third = other.take();
  expect(third).not.toBeNull();
  for (const lane of [second, third]) lane?.release();
});
