import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

/** A streamed MP3 does not state its length: cut between two frames, nothing tells. */
const telling = formats.filter(([name]) => name !== "mp3");

test.each(telling)("P13: %s without its end is refused, wherever it was cut", async (name, category) => {
  const whole = await media[name]();
  const accepted: number[] = [];
  for (const length of cuts(whole.length))
    if ((await look(whole.subarray(0, length), category)).kind === "media") accepted.push(length);
  expect(accepted).toEqual([]);
});

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

  const seeing = ["png", "avif", "gif", "mp4", "mp4IndexFirst", "mp3", "ogg"] as const;
  test.each(formats.filter(([name]) => (seeing as readonly string[]).includes(name)))(
    "P13: in %s is seen wherever it is",
    async (name, category) => {
      const [count, all] = await seen(await media[name](), category);
      expect(count).toBe(all);
    },
  );

  test("P13: in a JPEG is seen by the number of its blocks, which decoders do not count", async () => {
    const width = 400;
    const pixels = Buffer.from(
      Array.from({ length: width * width * 3 }, (_, at) => 128 + 90 * Math.sin(at / 37) + ((at * 7919) % 31)),
    );
    const picture = sharp(pixels, { raw: { width, height: width, channels: 3 } });
    // The scans of a progressive picture are the decoder's to judge, which hears of most holes.
    for (const options of [{ progressive: true }, {}, { chromaSubsampling: "4:4:4" }, { quality: 40 }]) {
      const whole = await picture.clone().jpeg(options).toBuffer();
      expect(await look(whole, "image")).toMatchObject({ kind: "media", check: "decoded" });
      const [count, all] = await seen(whole, "image");
      expect(count, JSON.stringify(options)).toBeGreaterThanOrEqual("progressive" in options ? all - 1 : all);
    }
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

  test("P13: in H.264 is told from what an encoder writes: three zeros in a row are damage", async () => {
    const whole = await media.mp4IndexFirst();
    const unit = whole.indexOf(Buffer.from([0, 0, 0, 146]));
    const holed = Buffer.from(whole).fill(0, unit + 40, unit + 43);
    expect(await look(holed, "video")).toEqual({
      kind: "bad",
      reason: "video/mp4 is damaged: packet 1 has a run of zeros that no encoder writes",
    });
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

  test("a category that nobody knows accepts any media", async () => {
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

describe("lengths that are stated in special ways", () => {
  test("P13: an MP3 that notes its number of bytes is refused without its end", async () => {
    const noted = await media.mp3Noted();
    expect(await look(noted, "audio")).toMatchObject({ kind: "media", check: "packets" });
    expect(await look(noted.subarray(0, -1), "audio")).toMatchObject({ kind: "bad" });
  });

  test("P13: an Ogg file that ends with a whole page, but not the last one, is refused", async () => {
    const bytes = await media.ogg();
    const lastPage = bytes.lastIndexOf("OggS");
    expect(await look(bytes.subarray(0, lastPage), "audio")).toMatchObject({
      kind: "bad",
      reason: expect.stringContaining("not marked as the end"),
    });
  });

  test("a WAV written to a pipe, whose length was never filled in, is accepted", async () => {
    const bytes = await media.wav();
    bytes.writeUInt32LE(0xffffffff, 4);
    expect(await look(bytes, "audio")).toMatchObject({ kind: "media", openEnded: true });
  });

  test("P13: fragments without the mark of their end are open-ended: there may have been more", async () => {
    const whole = await media.mp4Fragmented();
    const cut = whole.subarray(0, whole.lastIndexOf("mfra") - 4);
    expect(await look(cut, "video")).toMatchObject({ kind: "media", check: "packets", openEnded: true });
  });

  test("P13: a recording that never learned its length is open-ended", async () => {
    const live = await media.webm();
    const segment = live.indexOf(Buffer.from([0x18, 0x53, 0x80, 0x67])) + 4;
    const lengthBytes = Math.clz32(live[segment]!) - 23;
    expect(await look(live, "video")).not.toHaveProperty("openEnded");
    live.fill(0xff, segment, segment + lengthBytes);
    live[segment] = 0xff >> (lengthBytes - 1);
    expect(await look(live, "video")).toMatchObject({ kind: "media", openEnded: true });
  });
});
