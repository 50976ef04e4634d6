import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inspect, inspectSmallPicture, smallBytes } from "../../../src/archive/check/content.js";
import { decodedSize } from "../../../src/archive/check/pictures.js";
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
  ["png", "image", "png", "image/png", "decoded", { width: 48, height: 36 }],
  ["jpeg", "image", "jpg", "image/jpeg", "decoded", { width: 48, height: 36 }],
  ["webp", "image", "webp", "image/webp", "decoded", { width: 48, height: 36 }],
  ["webpLossy", "image", "webp", "image/webp", "decoded", { width: 48, height: 36 }],
  ["gif", "image", "gif", "image/gif", "decoded", { width: 48, height: 36 }],
  ["avif", "image", "avif", "image/avif", "decoded", { width: 48, height: 36 }],
  ["mp4", "video", "mp4", "video/mp4", "packets", { width: 64, height: 48, duration: 1 }],
  ["mp4IndexFirst", "video", "mp4", "video/mp4", "packets", { width: 64, height: 48, duration: 1 }],
  ["mp4Fragmented", "video", "mp4", "video/mp4", "packets", { width: 64, height: 48, duration: 1 }],
  ["webm", "video", "webm", "video/webm", "packets", { width: 64, height: 48, duration: 1 }],
  ["wav", "audio", "wav", "audio/wav", "packets", { duration: 0.5 }],
  ["mp3", "audio", "mp3", "audio/mpeg", "packets", { duration: 0.549 }],
  ["ogg", "audio", "ogg", "audio/ogg", "packets", { duration: 0.5 }],
] as const;

test.each(formats)(
  "P13: a whole %s is known by its content as %s",
  async (name, category, extension, mime, check, measures) => {
    const found = { kind: "media", extension, mime, check, ...measures };
    expect(await look(await media[name](), category)).toEqual(found);
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

/** Some of the first and last bytes, and some between: `npm run bench` cuts after each byte. */
function cuts(size: number): number[] {
  const step = Math.max(1, Math.floor(size / 20));
  const all = Array.from({ length: size }, (_, length) => length);
  return all.filter((length) => length < 8 || length > size - 12 || length % step === 0);
}

test.each([
  ["mp4Sound", "audio", { extension: "mp4", mime: "audio/mp4", duration: 0.026 }],
  ["mp4Sound", "hologram", { extension: "mp4", mime: "video/mp4", duration: 0.026 }],
  ["mp4", "hologram", { extension: "mp4", mime: "video/mp4", width: 64, height: 48, duration: 1 }],
  ["opus", "audio", { extension: "opus", mime: "audio/ogg", duration: 0.02 }],
] as const)(
  "P13: %s as %s is sound in a container that may hold video, or what it is",
  async (name, category, type) => {
    expect(await look(await media[name](), category)).toEqual({ kind: "media", ...type, check: "packets" });
  },
);

describe("an SVG", () => {
  const known = { kind: "media", extension: "svg", mime: "image/svg+xml", check: "type" };
  const body = '<svg xmlns="http://www.w3.org/2000/svg"><circle r="4"/></svg>';

  test.each([
    body,
    `\ufeff${body}\n`,
    `<?xml version="1.0"?>\n<!-- a > b -->\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "x">\n${body}`,
    `${body}<!-- made by a model -->\n`,
    `<svg width="1">${" ".repeat(10_000)}</svg>`,
    '<svg xmlns="http://www.w3.org/2000/svg"/>',
  ])("is known from its beginning to its end", async (text) => {
    expect(await look(text, "image")).toEqual(known);
    expect(await look(text, "hologram")).toEqual(known);
    expect(await look(text, "video")).toEqual({ kind: "bad", reason: "expected video, got image/svg+xml" });
  });

  test.each([
    [body.slice(0, -3), "image/svg+xml has no end"],
    [body.slice(0, 30), "image/svg+xml has no end"],
    [`<html><body>${body}</body></html>`, "expected image, got an HTML page"],
    [`<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>`, "expected image, got XML"],
    ["<svgs></svgs>", "expected image, got XML"],
  ])("P13: is not %j", async (text, reason) => {
    expect(await look(text, "image")).toEqual({ kind: "bad", reason });
  });
});

test("a picture that no library here decodes is known by its type", async () => {
  const bitmap = Buffer.alloc(58);
  bitmap.write("BM", "latin1");
  expect(await look(bitmap, "image")).toEqual({
    kind: "media",
    extension: "bmp",
    mime: "image/bmp",
    check: "type",
  });
});

test("P13: a file of any size is looked at, not only a small one", async () => {
  const padded = Buffer.concat([await media.gif(), Buffer.alloc(smallBytes)]);
  expect(await look(padded, "image")).toMatchObject({ mime: "image/gif", check: "decoded" });
  const page = Buffer.concat([Buffer.from("<html>"), Buffer.alloc(smallBytes, " ")]);
  expect(await look(page, "image")).toEqual({ kind: "bad", reason: "expected image, got an HTML page" });
});

describe("a picture that programs have written oddly", () => {
  test("is whole with zeros after its end", async () => {
    for (const name of ["gif", "jpeg", "png"] as const)
      expect(await look(Buffer.concat([await media[name](), Buffer.alloc(100)]), "image")).toMatchObject({
        check: "decoded",
      });
  });

  test("P13: is refused if zeros are all that comes where it should end", async () => {
    for (const name of ["gif", "jpeg", "png"] as const) {
      const bytes = await media[name]();
      bytes.fill(0, bytes.length - 200);
      expect(await look(bytes, "image")).toMatchObject({
        kind: "bad",
        // The pictures are noise: the zeros of some are no pixels, and of most they are.
        reason: expect.stringMatching(/is truncated: it has no end mark|cannot be decoded/),
      });
    }
  });

  test("is whole with an unknown note of its colours, of which decoders only warn", async () => {
    const plain = await media.jpeg();
    const adobe = Buffer.from("\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\x07", "latin1");
    const noted = Buffer.concat([plain.subarray(0, 2), adobe, plain.subarray(2)]);
    expect(await look(noted, "image")).toMatchObject({ mime: "image/jpeg", check: "decoded" });
  });
});

describe("P13: what is wrong with a picture is told in its decoder's words, on one line:", () => {
  test("a JPEG that goes from its middle to its end mark", async () => {
    const bytes = await media.jpeg();
    const cut = Buffer.concat([bytes.subarray(0, bytes.length >> 1), Buffer.from([0xff, 0xd9])]);
    expect(await look(cut, "image")).toEqual({
      kind: "bad",
      reason: expect.stringMatching(/^image\/jpeg cannot be decoded: .*premature end/),
    });
  });

  test("a JPEG that lacks a table, of which its decoder does not say that it is damage", async () => {
    const bytes = await media.jpeg();
    // A comment in place of each table.
    const text = bytes.toString("latin1").replaceAll("\xff\xdb", "\xff\xfe");
    expect(await look(Buffer.from(text, "latin1"), "image")).toEqual({
      kind: "bad",
      reason: expect.stringMatching(/^image\/jpeg cannot be decoded: .*table/),
    });
  });

  test.each([
    ["gif", /^image\/gif cannot be decoded: .*invalid frame data/i],
    // There is a line for each of many tries.
    ["avif", /^image\/avif cannot be decoded: \S.{198}\S?$/],
  ] as const)("a %s with zeros in it", async (name, told) => {
    const bytes = await media[name]();
    bytes.fill(0, bytes.length >> 1, bytes.length - 40);
    expect(await look(bytes, "image")).toEqual({ kind: "bad", reason: expect.stringMatching(told) });
  });
});

describe("a small picture, which is checked without a thread,", () => {
  const small = async (bytes: Buffer) => {
    const path = join(folder, "small");
    await writeFile(path, bytes);
    return inspectSmallPicture(nodeDisk, path, bytes.length);
  };

  test.each(["png", "jpeg", "webp", "webpLossy", "gif"] as const)("may be a %s", async (name) => {
    const bytes = await media[name]();
    expect(await small(bytes)).toEqual(await look(bytes, "image"));
  });

  test("P13: is whole: of one that is not, a thread says what is wrong", async () => {
    const bytes = await media.png();
    const cut = bytes.subarray(0, bytes.length - 40);
    expect(await small(cut)).toBeNull();
    expect(await look(cut, "image")).toMatchObject({ kind: "bad" });
    bytes.fill(0, bytes.length >> 1, bytes.length - 40);
    expect(await small(bytes)).toBeNull();
  });

  test.each([
    ["png", 12],
    ["jpeg", 2],
    ["gif", 1],
  ] as const)(
    "P13: is no %s without the %i bytes of its end mark, which decoders do not miss",
    async (name, length) => {
      const bytes = await media[name]();
      const cut = bytes.subarray(0, bytes.length - length);
      expect(await small(cut)).toBeNull();
      expect(await look(cut, "image")).toMatchObject({
        kind: "bad",
        reason: expect.stringContaining("is truncated: it has no end mark"),
      });
    },
  );

  test("has at most eight mebipixels", async () => {
    const wide = (height: number) =>
      sharp({ create: { width: 4096, height, channels: 3, background: "red" } })
        .png()
        .toBuffer();
    expect(await small(await wide(2048))).toMatchObject({ check: "decoded" });
    expect(await small(await wide(2049))).toBeNull();
  });

  test("P22: is nothing that a library might not get to the end of", async () => {
    for (const name of ["avif", "mp4", "wav", "mp3", "ogg"] as const)
      expect(await small(await media[name]()), name).toBeNull();
    expect(await small(Buffer.from("<html></html>"))).toBeNull();
    expect(await small(Buffer.from("RIFF but no more"))).toBeNull();
    expect(
      await small(png({ width: 16_000, height: 16_000, depth: 16, colours: 6, interlaced: 1 })),
    ).toBeNull();
  });
});

describe("P22: the memory that a picture takes when it is decoded", () => {
  const rgb = { depth: 8, colours: 2, interlaced: 0 };
  test.each([
    [{ ...rgb, width: 4096, height: 2730 }, "small"],
    [{ ...rgb, width: 4096, height: 2731 }, "large"],
    [{ ...rgb, depth: 16, width: 4096, height: 1365 }, "small"],
    [{ ...rgb, depth: 16, width: 4096, height: 1366 }, "large"],
    [{ depth: 16, colours: 6, interlaced: 0, width: 9000, height: 9000 }, "large"],
    [{ depth: 16, colours: 6, interlaced: 1, width: 8192, height: 8192 }, "large"],
    [{ depth: 16, colours: 6, interlaced: 1, width: 8192, height: 8193 }, "too large"],
    [{ depth: 8, colours: 0, interlaced: 0, width: 16_383, height: 16_383 }, "large"],
    [{ depth: 8, colours: 0, interlaced: 0, width: 16_384, height: 16_383 }, "too large"],
  ] as const)("of %j is %s", async (header, size) => {
    expect(await decodedSize(png(header))).toBe(size);
  });

  test("is that of all its frames", async () => {
    // A screen of four million pixels, and frames of one.
    const screen = Buffer.from("GIF89a\0\x08\0\x08\x80\0\0\0\0\0\xff\xff\xff", "latin1");
    const frame = Buffer.from("!\xf9\x04\0\x0a\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0", "latin1");
    const frames = (count: number) =>
      decodedSize(Buffer.concat([screen, ...Array<Buffer>(count).fill(frame), Buffer.from(";")]));
    expect([await frames(1), await frames(3)]).toEqual(["small", "large"]);
  });

  test("is not known of what has no header, and may be much", async () => {
    expect(await decodedSize(Buffer.from("nothing"))).toBe("large");
  });
});

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
    ['<svgs xmlns="http://www.w3.org/2000/svg"></svgs>', "XML"],
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
    ["png", "video", "image/png"],
    ["png", "audio", "image/png"],
    ["mp4", "image", "video/mp4"],
    ["wav", "image", "audio/wav"],
    ["wav", "video", "audio/wav"],
    ["mp4", "audio", "video/mp4 without such a track"],
    ["mp4Sound", "video", "video/mp4 without such a track"],
  ] as const)("P13: %s is not accepted as %s", async (name, category, got) => {
    expect(await look(await media[name](), category)).toEqual({
      kind: "bad",
      reason: `expected ${category}, got ${got}`,
    });
  });

  test("P13: what is called a page or JSON begins like it", async () => {
    for (const text of ["see <html>", "a {", "x <Error>"])
      expect(await look(text, "image")).toEqual({
        kind: "bad",
        reason: "expected image, got no known media format",
      });
    expect(await look("[1]", "image")).toEqual({ kind: "bad", reason: "expected image, got JSON" });
  });

  test.each(["ogg", "mp3"] as const)("P13: of a cut %s it is said that it cannot be read", async (name) => {
    const reason = expect.stringMatching(/^audio\/\w+ (cannot be read: .|was cut off: it states )/);
    expect(await look((await media[name]()).subarray(0, 400), "audio")).toEqual({ kind: "bad", reason });
  });

  test("P13: a sound without a packet is refused", async () => {
    const whole = await media.wav();
    const empty = Buffer.concat([whole.subarray(0, whole.indexOf("data") + 4), Buffer.alloc(4)]);
    empty.writeUInt32LE(empty.length - 8, 4);
    expect(await look(empty, "audio")).toEqual({ kind: "bad", reason: "audio/wav has an empty audio track" });
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
    await writeFile(file, png({ width: 16_000, height: 16_000, depth: 16, colours: 6, interlaced: 1 }));
    expect(await inspect(nodeDisk, file, "image")).toEqual({
      kind: "media",
      extension: "png",
      mime: "image/png",
      check: "type",
      because: "too large to decode",
    });
  });

  test("P22: a file that took too long or too much before is taken by its type, and says why", async () => {
    for (const [name, extension, mime] of [
      ["png", "png", "image/png"],
      ["wav", "wav", "audio/wav"],
    ] as const) {
      const path = join(folder, "again");
      await writeFile(path, await media[name]());
      const content = await inspect(nodeDisk, path, "hologram", "it took too long");
      expect(content).toEqual({ kind: "media", extension, mime, check: "type", because: "it took too long" });
    }
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

interface PngHeader {
  width: number;
  height: number;
  /** Bits of a sample. */
  depth: number;
  /** As the format numbers them: 0 is grey, 2 is RGB, 6 is RGB with transparency. */
  colours: number;
  interlaced: number;
}

/** The header of a PNG, and no pixels. */
function png({ width, height, depth, colours, interlaced }: PngHeader): Buffer {
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
  header.set([depth, colours, 0, 0, interlaced], 8);
  const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  const pieces = [
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.alloc(8))),
    chunk("IEND", Buffer.alloc(0)),
  ];
  return Buffer.concat([signature, ...pieces]);
}
