import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openLanes } from "../../src/store/lanes.js";

test("P3: an account has a fixed number of lanes, over all processes", () => {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-lanes-"));
  const open = () => openLanes({ folder, count: 2, gateFile: join(folder, "key.lock") });
  const [one, other] = [open(), open()];
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

test("P5: the key's counters are read only while no lane is taken, here or elsewhere, and hold the lanes back", () => {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-lanes-"));
  const gateFile = join(folder, "key.lock");
  const one = openLanes({ folder: join(folder, "one"), count: 2, gateFile });
  const other = openLanes({ folder: join(folder, "other"), count: 2, gateFile });
  const [first, second] = [one.take(), other.take()];
  expect([first, second]).not.toContain(null);
  expect([one.bracket(), other.bracket()]).toEqual([null, null]);
  first?.release();
  expect(one.bracket()).toBeNull();
  second?.release();
  const bracket = one.bracket();
  expect(bracket).not.toBeNull();
  expect([one.take(), other.take(), other.bracket()]).toEqual([null, null, null]);
  bracket?.release();
  const third = other.take();
  expect(third).not.toBeNull();
  third?.release();
});
