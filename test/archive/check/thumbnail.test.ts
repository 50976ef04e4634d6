import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { afterEach, beforeEach, expect, test } from "vitest";
import { keepPreview, previewName, thumbnailOf } from "../../../src/archive/check/thumbnail.js";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { systemError, watchedDisk } from "../watched-disk.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-thumbnail-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sha256 = "0123456789abcdef".repeat(4);
const name = "_gallery/0123456789abcdef0123456789abcdef.webp";

/** Puts a picture of that size into the folder. */
async function picture(
  width: number,
  height: number,
  orientation?: number,
): Promise<{ file: string; sha256: string }> {
  const made = sharp({ create: { width, height, channels: 3, background: "#3366aa" } }).png();
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
  expect(await thumbnailOf(nodeDisk, folder, await picture(100, 300))).toMatchObject({
    width: 100,
    height: 300,
  });
});

test("a thumbnail stands as its picture is meant to", async () => {
  // Taken with the camera turned.
  expect(await thumbnailOf(nodeDisk, folder, await picture(200, 100, 6))).toMatchObject({
    width: 100,
    height: 200,
  });
});

test("a thumbnail is made once, and used again when its picture is gone", async () => {
  const made = await thumbnailOf(nodeDisk, folder, await picture(64, 32));
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

test("an existing thumbnail that is damaged stays as it is, and shows nothing", async () => {
  mkdirSync(join(folder, "_gallery"));
  writeFileSync(join(folder, name), "damaged");
  expect(await thumbnailOf(nodeDisk, folder, await picture(64, 32))).toBeNull();
  expect(readFileSync(join(folder, name), "utf8")).toBe("damaged");
});

test("a preview is durable before it has its name, replaces none, and leaves nothing behind", async () => {
  const preview = previewName(sha256, "json");
  expect(preview).toBe("_gallery/0123456789abcdef0123456789abcdef.json");
  const steps: string[] = [];
  const disk = watchedDisk(nodeDisk, (step) => steps.push(step));
  await keepPreview(disk, folder, preview, Buffer.from("[1]"));
  expect(steps.filter((step) => /^(write|sync|link|unlink)$/.test(step))).toEqual([
    "write",
    "sync",
    "link",
    "unlink",
  ]);
  await keepPreview(nodeDisk, folder, preview, Buffer.from("[2]"));
  expect(readFileSync(join(folder, preview), "utf8")).toBe("[1]");
  expect(readdirSync(join(folder, "_gallery"))).toHaveLength(1);
  const full = watchedDisk(nodeDisk, (step) => {
    if (step === "link") throw systemError("ENOSPC");
  });
  await expect(keepPreview(full, folder, "_gallery/b.json", Buffer.from("x"))).rejects.toThrow("ENOSPC");
  expect(readdirSync(join(folder, "_gallery"))).toHaveLength(1);
});
