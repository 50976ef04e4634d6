import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inspect } from "../../../src/archive/check/content.js";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { media } from "../media.js";
import { systemError, watchedDisk } from "../watched-disk.js";

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
  ["webpLossy", "image", "webp", "image/webp", "decoded"],
  ["gif", "image", "gif", "image/gif", "decoded"],
  ["avif", "image", "avif", "image/avif", "decoded"],
  ["mp4", "video", "mp4", "video/mp4", "packets"],
  ["mp4IndexFirst", "video", "mp4", "video/mp4", "packets"],
  ["mp4Fragmented", "video", "mp4", "video/mp4", "packets"],
  ["webm", "video", "webm", "video/webm", "packets"],
  ["wav", "audio", "wav", "audio/wav", "packets"],
  ["mp3", "audio", "mp3", "audio/mpeg", "packets"],
  ["ogg", "audio", "ogg", "audio/ogg", "packets"],
] as const;

test.each(formats)(
  "P13: a whole %s is known by its content as %s",
  async (name, category, extension, mime, check) => {
    expect(await look(await media[name](), category)).toEqual({ kind: "media", extension, mime, check });
  },
);

test.each(formats)(
  "P13: %s without its end is refused, or its check does not say that it is complete",
  async (name, category, _extension, _mime, check) => {
    const whole = await media[name]();
    const accepted = new Set<string>();
    for (const length of cuts(whole.length)) {
      const content = await look(whole.subarray(0, length), category);
      if (content.kind === "media") accepted.add(content.check);
    }
    expect([...accepted]).toEqual(check === "decoded" || name === "mp4" || name === "ogg" ? [] : ["packets"]);
  },
);

/** Each of the first and last bytes, and some between. */
function cuts(size: number): number[] {
  const step = Math.max(1, Math.floor(size / 60));
  const all = Array.from({ length: size }, (_, length) => length);
  return all.filter((length) => length < 20 || length > size - 30 || length % step === 0);
}

describe("a hole in the middle", () => {
  /** How many of the holes are seen: 600 zeros at each of some places. */
  async function seen(whole: Buffer, category: string): Promise<[number, number]> {
    const places = [0.2, 0.35, 0.5, 0.65, 0.8].map((share) => Math.floor(whole.length * share));
    let count = 0;
    for (const at of places) {
      const holed = Buffer.from(whole).fill(0, at, at + Math.min(600, whole.length >> 3));
      if ((await look(holed, category)).kind === "bad") count++;
    }
    return [count, places.length];
  }

  // A lossy picture or a video with a hole still decodes: these formats have no checksums.
  const checked = formats.filter(([name]) => ["png", "avif", "gif"].includes(name));
  test.each(checked)("P13: in %s is found wherever it is", async (name, category) => {
    const [count, all] = await seen(await media[name](), category);
    expect(count).toBe(all);
  });

  test("a JPEG with restart markers, with one colour, or of one pixel is whole", async () => {
    for (const [width, height] of [
      [1, 1],
      [17, 8],
      [333, 41],
    ]) {
      const plain = sharp({ create: { width: width!, height: height!, channels: 3, background: "#888" } });
      for (const made of [plain.clone().jpeg(), plain.clone().greyscale().jpeg({ optimiseCoding: false })])
        expect(await look(await made.toBuffer(), "image")).toMatchObject({ kind: "media" });
    }
  });
});

describe("what is not what was ordered", () => {
  test.each([
    ["<!DOCTYPE html><html>", "an HTML page"],
    ["  <html><body>", "an HTML page"],
    ['<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "XML"],
    ["<Error><Code>AccessDenied</Code></Error>", "XML"],
    ['{"error":{"code":"EXPIRED"}}', "JSON"],
    ["Service Unavailable", "no known media format"],
    ['<svg xmlns="http://www.w3.org/2000/svg"></svg>', "XML"],
  ])("P13: %j in place of media is called what it is", async (bytes, found) => {
    for (const category of ["image", "video", "audio", "hologram"])
      expect(await look(bytes, category)).toMatchObject({
        kind: "bad",
        reason: expect.stringContaining(found),
      });
  });

  test("P13: an empty file is no output", async () => {
    expect(await look("", "image")).toEqual({ kind: "bad", reason: "the file is empty" });
  });

  test("P17: a file that is gone is the disk's trouble, and no empty output", async () => {
    await expect(inspect(nodeDisk, join(folder, "gone"), "image")).rejects.toMatchObject({ code: "ENOENT" });
  });

  test.each([
    ["png", "video"],
    ["png", "audio"],
    ["mp4", "image"],
    ["wav", "image"],
    ["wav", "video"],
    ["mp4", "audio"],
  ] as const)("P13: %s is not accepted as %s", async (name, category) => {
    expect(await look(await media[name](), category)).toMatchObject({ kind: "bad" });
  });

  test("P13: a picture with a hole in its data is refused where the format can tell", async () => {
    const bytes = await media.png();
    bytes.fill(0, Math.floor(bytes.length / 2), bytes.length - 40);
    expect(await look(bytes, "image")).toMatchObject({
      kind: "bad",
      reason: expect.stringContaining("cannot be decoded"),
    });
  });

  test("P22: an interlaced picture that would fill the memory is taken by its type, and says so", async () => {
    const file = join(folder, "huge.png");
    await writeFile(file, interlacedPng(16_000, 16_000));
    expect(await inspect(nodeDisk, file, "image")).toEqual({
      kind: "media",
      extension: "png",
      mime: "image/png",
      check: "type",
      because: "too large to decode",
    });
  });

  test("an unknown category accepts any media", async () => {
    expect(await look(await media.png(), "hologram")).toMatchObject({ kind: "media", mime: "image/png" });
    expect(await look(await media.wav(), "hologram")).toMatchObject({ kind: "media", mime: "audio/wav" });
  });
});

test.each(["wav", "mp3", "png"] as const)(
  "P17: a disk that cannot be read says nothing about a %s",
  async (name) => {
    const path = join(folder, "unread");
    await writeFile(path, await media[name]());
    const category = name === "png" ? "image" : "audio";
    const readsUntil = async (last: number) => {
      let reads = 0;
      const disk = watchedDisk(nodeDisk, (step) => {
        if (step === "read" && reads++ >= last) throw systemError("EIO");
      });
      const outcome = await inspect(disk, path, category).catch((error: { code: string }) => error.code);
      return { reads, outcome };
    };
    const whole = await readsUntil(Number.POSITIVE_INFINITY);
    expect(whole.outcome).toMatchObject({ kind: "media" });
    for (let last = 0; last < whole.reads; last++)
      expect((await readsUntil(last)).outcome, `read ${last}`).toBe("EIO");
  },
);

/** The header of an interlaced PNG with 16 bits a sample, and no pixels. */
function interlacedPng(width: number, height: number): Buffer {
  const chunk = (type: string, body: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(body.length);
    const named = Buffer.concat([Buffer.from(type, "latin1"), body]);
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(crc32(named));
    return Buffer.concat([length, named, sum]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([16, 6, 0, 0, 1], 8);
  const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  const pieces = [
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.alloc(8))),
    chunk("IEND", Buffer.alloc(0)),
  ];
  return Buffer.concat([signature, ...pieces]);
}
