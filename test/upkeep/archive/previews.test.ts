import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ArchivedOutput } from "../../../src/core/ports/store.js";
import { openPreviews } from "../../../src/upkeep/archive/previews.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-previews-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function output(file: string, mime: string): ArchivedOutput {
  return { file, mime, sha256: Buffer.from(file).toString("hex").padEnd(64, "0") } as ArchivedOutput;
}

async function picture(file: string, side: number): Promise<ArchivedOutput> {
  const made = sharp({ create: { width: side, height: side, channels: 3, background: "#3366aa" } });
  writeFileSync(join(folder, file), await made.png({ compressionLevel: 0 }).toBuffer());
  return output(file, "image/png");
}

/** Silence, as long as it takes. */
function sound(file: string): ArchivedOutput {
  const bytes = Buffer.alloc(2_044);
  bytes.write("RIFF", 0);
  bytes.writeUInt32LE(2_036, 4);
  bytes.write("WAVEfmt ", 8);
  for (const [at, value] of [
    [16, 16],
    [24, 8_000],
    [28, 16_000],
    [40, 2_000],
  ] as const)
    bytes.writeUInt32LE(value, at);
  for (const [at, value] of [
    [20, 1],
    [22, 1],
    [32, 2],
    [34, 16],
  ] as const)
    bytes.writeUInt16LE(value, at);
  bytes.write("data", 36);
  writeFileSync(join(folder, file), bytes);
  return output(file, "audio/wav");
}

async function written(outputs: readonly ArchivedOutput[]) {
  const previews = await openPreviews(folder);
  const found = [];
  for (const one of outputs) found.push(await previews.of(one));
  await previews.keep(outputs);
  return found;
}

const kept = () =>
  existsSync(join(folder, "_gallery")) ? readdirSync(join(folder, "_gallery")).toSorted() : [];

test("a second gallery opens no file again: heavy and light pictures, and sounds", async () => {
  const outputs = [await picture("heavy", 640), await picture("light", 32), sound("sound")];
  const first = await written(outputs);
  expect(first).toEqual([
    {
      thumbnail: { file: expect.stringMatching(/^_gallery\/.+\.webp$/), width: 560, height: 560 },
      loudness: null,
    },
    { thumbnail: { file: "light", width: 32, height: 32 }, loudness: null },
    { thumbnail: null, loudness: new Array(96).fill(0) },
  ]);
  // Whatever was opened again would be found missing.
  for (const { file } of outputs) rmSync(join(folder, file));
  writeFileSync(join(folder, first[0]?.thumbnail?.file ?? ""), "not read");
  expect(await written(outputs)).toEqual(first);
});

test("a light picture that has a new name is shown under it", async () => {
  const light = await picture("light", 32);
  await written([light]);
  expect(await written([{ ...light, file: "renamed" }])).toMatchObject([{ thumbnail: { file: "renamed" } }]);
});

test("previews of files that are gone go too, and nothing else of the folder does", async () => {
  const [a, b] = [await picture("a", 640), await picture("b", 640)];
  await written([a, b]);
  writeFileSync(join(folder, "_gallery", "mine.webp"), "of a person");
  expect(kept()).toHaveLength(4);
  await written([b]);
  expect(kept()).toEqual([expect.stringMatching(/^62.*\.webp$/), "mine.webp", "previews.json"]);
  expect(Object.keys(JSON.parse(readFileSync(join(folder, "_gallery/previews.json"), "utf8")))).toEqual([
    b.sha256,
  ]);
});

test("a thumbnail that was removed is made again, and a picture that came back has one", async () => {
  const a = await picture("a", 640);
  const [first] = await written([a]);
  rmSync(join(folder, first?.thumbnail?.file ?? ""));
  expect(await written([a])).toEqual([first]);
  expect(existsSync(join(folder, first?.thumbnail?.file ?? ""))).toBe(true);
  expect(await written([output("b", "image/png")])).toEqual([{ thumbnail: null, loudness: null }]);
  expect(await written([await picture("b", 32)])).toMatchObject([{ thumbnail: { file: "b" } }]);
});

test.each([
  "[1, 2",
  "[]",
  '{"a":{"thumbnail":{"file":"../../x"},"loudness":null}}',
  '{"a":{"loudness":[0.5]}}',
])("a list of previews that is damaged is made anew: %s", async (damaged) => {
  const a = await picture("a", 32);
  mkdirSync(join(folder, "_gallery"));
  writeFileSync(join(folder, "_gallery/previews.json"), damaged);
  expect(await written([a])).toMatchObject([{ thumbnail: { file: "a" } }]);
  expect(Object.keys(JSON.parse(readFileSync(join(folder, "_gallery/previews.json"), "utf8")))).toEqual([
    a.sha256,
  ]);
});

test("a folder without pictures and sounds has no folder of previews", async () => {
  await written([output("clip.mp4", "video/mp4")]);
  expect(kept()).toEqual([]);
});
