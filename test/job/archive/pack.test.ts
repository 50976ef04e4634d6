import { mkdirSync, mkdtempSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pack } from "../../../src/job/archive/pack.js";
import { ManualClock } from "../../manual-clock.js";

test("a file that cannot be read ends the packing, and leaves no part of a ZIP", async () => {
  const outFolder = mkdtempSync(join(tmpdir(), "bulkgen-pack-"));
  // A folder in place of the file cannot be read as one, whoever tries.
  const odd = join(outFolder, "job", "a.png");
  mkdirSync(odd, { recursive: true });
  const packing = pack({
    zip: join(outFolder, "a.zip"),
    runs: [{ outFolder, jobName: "job" }],
    files: [{ file: "a.png", bytes: statSync(odd).size }],
    sheet: null,
    clock: new ManualClock(),
    signal: new AbortController().signal,
  } as unknown as Parameters<typeof pack>[0]);
  await expect(packing).rejects.toThrow(/a\.png/);
  expect(readdirSync(outFolder)).toEqual(["job"]);
});
