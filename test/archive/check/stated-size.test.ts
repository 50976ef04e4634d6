import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inspect } from "../../../src/archive/check/content.js";
import { missingPart } from "../../../src/archive/check/stated-size.js";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { media } from "../media.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "bulkgen-stated-"));
});
afterAll(() => rm(folder, { recursive: true }));

const missing = (bytes: Buffer) =>
  missingPart(async (start, end) => bytes.subarray(start, end), bytes.length);

async function look(bytes: Buffer, category: string) {
  const path = join(folder, "file");
  await writeFile(path, bytes);
  return inspect(nodeDisk, path, category);
}

/** A chunk of RIFF, or its whole with a form. */
function chunk(name: string, content: Buffer, stated = content.length): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, 0, "latin1");
  head.writeUInt32LE(stated, 4);
  return Buffer.concat([head, content]);
}

function wav(data: Buffer, { whole = 36 + data.length, part = data.length } = {}): Buffer {
  const format = Buffer.alloc(16);
  format.writeUInt16LE(1, 0);
  format.writeUInt16LE(1, 2);
  format.writeUInt32LE(8_000, 4);
  format.writeUInt32LE(16_000, 8);
  format.writeUInt16LE(2, 12);
  format.writeUInt16LE(16, 14);
  const content = Buffer.concat([Buffer.from("WAVE"), chunk("fmt ", format), chunk("data", data, part)]);
  return chunk("RIFF", content, whole);
}

function bmp(stated: number, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  bytes.write("BM");
  bytes.writeUInt32LE(stated, 2);
  return bytes;
}

describe("P13: a file that is shorter than it says", () => {
  test.each(["wav", "mp4", "mp4IndexFirst", "mp4Fragmented", "webm", "ogg", "png", "webp", "avif"] as const)(
    "is damaged: %s, wherever it is cut",
    async (name) => {
      const whole = await media[name]();
      expect(await missing(whole)).toBeNull();
      const category =
        { wav: "audio", ogg: "audio", png: "image", webp: "image", avif: "image" }[name as string] ?? "video";
      for (const share of [0.3, 0.5, 0.7, 0.9]) {
        const length = Math.floor(whole.length * share);
        expect(await look(whole.subarray(0, length), category), String(share)).toMatchObject({ kind: "bad" });
      }
    },
  );

  test("a WAV whose header states twice of what it has", async () => {
    const whole = wav(Buffer.alloc(16_000, 1));
    expect(await look(whole, "audio")).toMatchObject({ kind: "media" });
    expect(await look(whole.subarray(0, 8_044), "audio")).toEqual({
      kind: "bad",
      reason: "audio/wav was cut off: it states 16044 bytes and has 8044",
    });
    // The whole and the part may say different things.
    expect(await missing(wav(Buffer.alloc(8_000, 1), { part: 16_000 }))).not.toBeNull();
    expect(await missing(wav(Buffer.alloc(8_000, 1), { whole: 16_036 }))).not.toBeNull();
  });

  test.each([
    ["AVI", chunk("RIFF", Buffer.concat([Buffer.from("AVI "), chunk("LIST", Buffer.alloc(50), 500)]), 600)],
    ["BMP", bmp(1_000, 500)],
    ["MP3 with a Xing header", xing(10_000, 4_000)],
    ["MP3 with tags before it", Buffer.concat([id3(200), xing(10_000, 4_000)])],
  ])("is damaged: %s", async (_, bytes) => {
    expect(await missing(bytes)).toMatch(/^states \d+ bytes and has \d+$/);
  });
});

function xing(stated: number, size: number): Buffer {
  const frame = Buffer.alloc(size);
  frame.set([0xff, 0xfb, 0x90, 0xc0]);
  frame.write("Info", 21, "latin1");
  frame.writeUInt32BE(3, 25);
  frame.writeUInt32BE(40, 29);
  frame.writeUInt32BE(stated, 33);
  return frame;
}

function id3(size: number): Buffer {
  const tag = Buffer.alloc(10 + size);
  tag.write("ID3\x04", "latin1");
  tag[8] = size >> 7;
  tag[9] = size & 0x7f;
  return tag;
}

describe("a file that does not know its size, or has more than it says, is whole", () => {
  test.each([
    ["a WAV of a program that streams", wav(Buffer.alloc(8_000, 1), { whole: 0xffffffff, part: 0xffffffff })],
    [
      "a WAV with the largest signed number",
      wav(Buffer.alloc(8_000, 1), { whole: 0x7fffffff, part: 0x7fffffdb }),
    ],
    ["a WAV with zeros", wav(Buffer.alloc(8_000, 0xee), { whole: 0, part: 0 })],
    ["a WAV that counts its own header", wav(Buffer.alloc(8_000, 1), { whole: 8_044 })],
    [
      "a WAV with text behind it",
      Buffer.concat([wav(Buffer.alloc(8_000, 1)), Buffer.from("made by hand\n")]),
    ],
    ["a BMP of unknown size", bmp(0, 500)],
    ["an MP3 that is longer", xing(4_000, 10_000)],
    ["text", Buffer.from("BM")],
  ])("%s", async (_, bytes) => {
    expect(await missing(bytes)).toBeNull();
  });

  test("an MP4 whose last box is open, or has something behind it", async () => {
    const whole = await media.mp4();
    const open = Buffer.concat([whole, Buffer.from([0, 0, 0, 0]), Buffer.from("free"), Buffer.alloc(100)]);
    expect(await missing(open)).toBeNull();
    expect(await missing(Buffer.concat([whole, Buffer.alloc(64)]))).toBeNull();
  });
});
