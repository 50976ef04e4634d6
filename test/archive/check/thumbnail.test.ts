import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { afterEach, beforeEach, expect, test } from "vitest";
import { thumbnailOf } from "../../../src/archive/check/thumbnail.js";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { systemError, watchedDisk } from "../watched-disk.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-thumbnail-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sha256 = "0123456789abcdef".repeat(4);
const name = "_gallery/0123456789abcdef0123456789abcdef.webp";

/** Puts a picture of that size into the folder, as a PNG so heavy that a page gains by a smaller one. */
async function picture(
  width: number,
  height: number,
  orientation?: number,
): Promise<{ file: string; sha256: string }> {
  const made = sharp({ create: { width, height, channels: 3, background: "#3366aa" } }).png({
    compressionLevel: 0,
  });
  writeFileSync(
    join(folder, "a.png"),
    await (orientation ? made.withMetadata({ orientation }) : made).toBuffer(),
  );
  return { file: "a.png", sha256 };
}

test("a thumbnail is as large as the gallery needs it, and no larger than its picture", async () => {
  expect(await thumbnailOf(nodeDisk, folder, await picture(1_120, 280))).toEqual({
    file: name,
    width: 560,
    height: 140,
  });
  expect((await sharp(join(folder, name)).metadata()).format).toBe("webp");
  rmSync(join(folder, "_gallery"), { recursive: true });
  expect(await thumbnailOf(nodeDisk, folder, await picture(300, 400))).toMatchObject({
    width: 300,
    height: 400,
  });
});

test("a thumbnail stands as its picture is meant to", async () => {
  // Taken with the camera turned.
  const turned = await picture(400, 300, 6);
  expect(await thumbnailOf(nodeDisk, folder, turned)).toEqual({ file: name, width: 300, height: 400 });
  const light = await picture(200, 100, 6);
  expect(await thumbnailOf(nodeDisk, folder, { ...light, sha256: "b".repeat(64) })).toEqual({
    file: "a.png",
    width: 100,
    height: 200,
  });
});

test("a light picture is its own thumbnail, unless it is too large, moves, or no browser shows it", async () => {
  const thumbnail = async (bytes: Promise<Buffer>, digit: string) => {
    writeFileSync(join(folder, "a"), await bytes);
    return (await thumbnailOf(nodeDisk, folder, { file: "a", sha256: digit.repeat(64) }))?.file;
  };
  const plain = (width: number, height = 32) =>
    sharp({ create: { width, height, channels: 3, background: "#3366aa" } });
  expect(await thumbnail(plain(1_120).png().toBuffer(), "1")).toBe("a");
  expect(await thumbnail(plain(1_120).jpeg().toBuffer(), "2")).toBe("a");
  expect(await thumbnail(plain(1_120).webp().toBuffer(), "3")).toBe("a");
  expect(readdirSync(folder)).toEqual(["a"]);
  expect(await thumbnail(plain(1_121).png().toBuffer(), "4")).toMatch("_gallery/4");
  expect(await thumbnail(plain(64).tiff().toBuffer(), "5")).toMatch("_gallery/5");
  const drawing =
    '<svg xmlns="http://www.w3.org/2000/svg" width="64" height="32"><rect width="9" height="9"/></svg>';
  expect(await thumbnail(Promise.resolve(Buffer.from(drawing)), "6")).toMatch("_gallery/6");
  const frames = await Promise.all(
    ["#fff", "#000"].map((background) =>
      sharp({ create: { width: 32, height: 32, channels: 3, background } })
        .png()
        .toBuffer(),
    ),
  );
  expect(
    await thumbnail(
      sharp(frames, { join: { animated: true } })
        .webp()
        .toBuffer(),
      "7",
    ),
  ).toMatch("_gallery/7");
});

test("a thumbnail is made once, and used again when its picture is gone", async () => {
  const made = await thumbnailOf(nodeDisk, folder, await picture(640, 320));
  rmSync(join(folder, "a.png"));
  const steps: string[] = [];
  const disk = watchedDisk(nodeDisk, (step) => steps.push(step));
  expect(await thumbnailOf(disk, folder, { file: "a.png", sha256 })).toEqual(made);
  expect(steps).toEqual(["size", "read"]);
});

test("what is no picture, and what is not there, has no thumbnail", async () => {
  expect(await thumbnailOf(nodeDisk, folder, { file: "a.png", sha256 })).toBeNull();
  writeFileSync(join(folder, "a.png"), "no picture");
  expect(await thumbnailOf(nodeDisk, folder, { file: "a.png", sha256 })).toBeNull();
  expect(readdirSync(folder)).toEqual(["a.png"]);
});

test("an existing thumbnail that is damaged is not replaced", async () => {
  mkdirSync(join(folder, "_gallery"));
  writeFileSync(join(folder, name), "damaged");
  await thumbnailOf(nodeDisk, folder, await picture(640, 320));
  expect(readFileSync(join(folder, name), "utf8")).toBe("damaged");
});

test("a thumbnail is durable before it has its name, and leaves nothing behind", async () => {
  const steps: string[] = [];
  const disk = watchedDisk(nodeDisk, (step) => steps.push(step));
  await thumbnailOf(disk, folder, await picture(640, 320));
  expect(steps.filter((step) => /^(write|sync|link|unlink)$/.test(step))).toEqual([
    "write",
    "sync",
    "link",
    "unlink",
  ]);
  expect(readdirSync(join(folder, "_gallery"))).toHaveLength(1);
  const full = watchedDisk(nodeDisk, (step) => {
    if (step === "link") throw systemError("ENOSPC");
  });
  const other = { ...(await picture(640, 320)), sha256: "b".repeat(64) };
  await expect(thumbnailOf(full, folder, other)).rejects.toThrow("ENOSPC");
  expect(readdirSync(join(folder, "_gallery"))).toHaveLength(1);
});
