import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { pack } from "../../../src/upkeep/archive/pack.js";
import { ManualClock } from "../../manual-clock.js";

test("a file that cannot be read ends the packing, and leaves no part of a ZIP", async () => {
  const outFolder = mkdtempSync(join(tmpdir(), "bulkgen-pack-"));
  // A folder in place of the file cannot be read as one, whoever tries.
  const odd = join(outFolder, "job", "a.png");
  mkdirSync(odd, { recursive: true });
  const packing = pack({
    zip: join(outFolder, "a.zip"),
    runs: [{ outFolder, jobName: "job", options: {} }],
    files: [{ file: "a.png", name: "a.png", bytes: statSync(odd).size, outFolder }],
    sheet: null,
    clock: new ManualClock(),
    signal: new AbortController().signal,
  } as unknown as Parameters<typeof pack>[0]);
  await expect(packing).rejects.toThrow(/a\.png/);
  expect(readdirSync(outFolder)).toEqual(["job"]);
});

test("of two files with one name and one size, the one that belongs to the item is packed", async () => {
  const root = mkdtempSync(join(tmpdir(), "bulkgen-pack-"));
  const folders = ["before", "after"].map((name) => join(root, name));
  for (const folder of folders) {
    mkdirSync(join(folder, "job"), { recursive: true });
    writeFileSync(join(folder, "job", "a.wav"), `sound of ${basename(folder).padEnd(6)}`);
  }
  const [before = ""] = folders;
  const zip = join(root, "a.zip");
  await pack({
    zip,
    runs: folders.map((outFolder) => ({ outFolder, jobName: "job" })),
    files: [{ file: "a.wav", name: "a.wav", bytes: 15, outFolder: before }],
    sheet: null,
    clock: new ManualClock(),
    signal: new AbortController().signal,
  } as unknown as Parameters<typeof pack>[0]);
  expect(readFileSync(zip, "latin1")).toContain("sound of before");
});
