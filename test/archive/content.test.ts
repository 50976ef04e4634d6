import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inspect } from "../../src/archive/content.js";
import { nodeDisk } from "../../src/archive/node-disk.js";
import { media } from "./media.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "bulkgen-content-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function look(bytes: Uint8Array | string, category: string) {
  const path = join(folder, "file");
  await writeFile(path, bytes);
  return inspect(nodeDisk, path, category);
}

const formats = [
  ["png", "image", "png", "image/png", "decoded"],
  ["jpeg", "image", "jpg", "image/jpeg", "decoded"],
  ["webp", "image", "webp", "image/webp", "decoded"],
  ["gif", "image", "gif", "image/gif", "decoded"],
  ["avif", "image", "avif", "image/avif", "decoded"],
  ["mp4", "video", "mp4", "video/mp4", "container"],
  ["mp4IndexFirst", "video", "mp4", "video/mp4", "container"],
  ["mp4Fragmented", "video", "mp4", "video/mp4", "container"],
  ["webm", "video", "webm", "video/webm", "container"],
  ["wav", "audio", "wav", "audio/wav", "container"],
  ["mp3", "audio", "mp3", "audio/mpeg", "container"],
  ["ogg", "audio", "ogg", "audio/ogg", "container"],
] as const;

describe.each(formats)("%s", (name, category, extension, mime, check) => {
  test("P13: a whole file is known by its content, and how far it was checked", async () => {
    expect(await look(await media[name](), category)).toEqual({ kind: "media", extension, mime, check });
  });

  test.skipIf(name === "mp3")("P13: a file without its end is refused, wherever it was cut", async () => {
    const whole = await media[name]();
    const accepted: number[] = [];
    for (const length of cuts(whole.length))
      if ((await look(whole.subarray(0, length), category)).kind === "media") accepted.push(length);
    expect(accepted).toEqual([]);
  });
});

/** Each of the first and last bytes, and some between. */
function cuts(size: number): number[] {
  const step = Math.max(1, Math.floor(size / 60));
  const all = Array.from({ length: size }, (_, length) => length);
  return all.filter((length) => length < 20 || length > size - 30 || length % step === 0);
}
