import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { bucketAddress, bucketDisk } from "../../../src/archive/disk/bucket-disk.js";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { type Bucket, openBucket } from "../../../src/bucket/bucket.js";
import type { Disk } from "../../../src/core/ports/disk.js";
import { s3Server } from "../../bucket/s3-server.js";

const text = "a picture";
const facts = {
  bytes: text.length,
  sha256: createHash("sha256").update(text).digest("hex"),
  mime: "image/png",
};

let env: Record<string, string>;
let folder: string;
let bucket: Bucket;
let disk: Disk;
beforeEach(async () => {
  const root = mkdtempSync(join(tmpdir(), "bulkgen-bucket-disk-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  folder = join(root, "cups");
  await nodeDisk.makeFolder(folder);
  env = await s3Server();
  bucket = openBucket({ bucket: "inputs", prefix: "team" }, env);
  disk = bucketDisk(nodeDisk, bucket, folder, true);
});

const at = (name: string) => join(folder, name);
/** A new file of this disk. */
function made(name: string, content = text): string {
  writeFileSync(at(name), content);
  return at(name);
}
async function uploaded(name: string): Promise<string> {
  await disk.link(made("new.part"), at(name), facts);
  rmSync(at("new.part"));
  return at(name);
}
async function contentOf(path: string, range?: { start: number; end: number }): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of disk.read(path, range)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

test("a finished file goes to the bucket under its name, and is found, read and removed there", async () => {
  const path = await uploaded("cup.png");
  expect(readdirSync(folder)).toEqual([]);
  expect(await bucket.find("cups/cup.png")).toEqual({ bytes: facts.bytes, sha256: facts.sha256 });
  expect([await disk.size(path), await disk.list(folder)]).toEqual([facts.bytes, ["cup.png"]]);
  expect(await disk.inBucket?.(path)).toEqual({
    bucket: "s3://inputs/team",
    bytes: facts.bytes,
    sha256: facts.sha256,
  });
  expect([await contentOf(path), await contentOf(path, { start: 2, end: 5 })]).toEqual([text, "pic"]);
  await disk.unlink(path);
  expect([await disk.size(path), await disk.inBucket?.(path), await bucket.list("cups")]).toEqual([
    null,
    null,
    [],
  ]);
});

test("P13: a name that is taken, in the bucket or on the disk, is never replaced", async () => {
  await uploaded("cup.png");
  made("here.png", "another");
  const file = made("new.part", "xxxxxxxxx");
  for (const name of ["cup.png", "here.png"])
    await expect(disk.link(file, at(name), facts)).rejects.toMatchObject({ code: "EEXIST" });
  await bucket.copy("cups/cup.png", "cups/worker.part");
  for (const name of ["cup.png", "here.png"])
    await expect(disk.link(at("worker.part"), at(name), facts)).rejects.toMatchObject({ code: "EEXIST" });
  expect([await contentOf(at("cup.png")), await contentOf(at("here.png"))]).toEqual([text, "another"]);
});

test("what is in the bucket gets a name there, and what is here without being finished stays here", async () => {
  await disk.link(await uploaded("worker.part"), at("cup.png"), facts);
  expect(await bucket.list("cups")).toEqual(["cup.png", "worker.part"]);
  await disk.link(made("bad.part"), at("bad.png"));
  expect([readdirSync(folder).toSorted(), await bucket.find("cups/bad.png")]).toEqual([
    ["bad.part", "bad.png"],
    null,
  ]);
});

test("the index is this disk's, even if the bucket has a copy of it", async () => {
  await disk.link(await uploaded("cup.png"), at("copy"), facts);
  await bucket.copy("cups/copy", "cups/index.jsonl");
  expect(await disk.size(at("index.jsonl"))).toBeNull();
  expect(await disk.size(join(folder, "..", "cup.png"))).toBeNull();
});

test("a disk that only reads from buckets keeps new files, and finds those of several", async () => {
  await uploaded("cup.png");
  const other = openBucket({ bucket: "inputs", prefix: "other" }, env);
  await other.put("cups/pot.png", { path: made("pot"), ...facts });
  const both = bucketDisk(bucketDisk(nodeDisk, bucket, folder, false), other, folder, false);
  expect((await both.list(folder)).toSorted()).toEqual(["cup.png", "pot", "pot.png"]);
  expect((await both.inBucket?.(at("cup.png")))?.bucket).toBe("s3://inputs/team");
  expect((await both.inBucket?.(at("pot.png")))?.bucket).toBe("s3://inputs/other");
  await both.link(at("pot"), at("new.png"), facts);
  expect(readFileSync(at("new.png"), "utf8")).toBe(text);
  expect([await both.inBucket?.(at("new.png")), await other.find("cups/new.png")]).toEqual([null, null]);
});

test("the folder of a file that another host uploaded need not be here", async () => {
  await disk.syncFolder(at("sub"));
  await expect(
    bucketDisk(
      { ...nodeDisk, syncFolder: () => Promise.reject(new Error("EIO")) },
      bucket,
      folder,
      true,
    ).syncFolder(folder),
  ).rejects.toThrow("EIO");
});

test("an address has the bucket, the job and the file", () => {
  expect(bucketAddress("s3://inputs/team", folder, "sub/cup.png")).toBe("s3://inputs/team/cups/sub/cup.png");
  expect(bucketAddress("s3://inputs", folder, "")).toBe("s3://inputs/cups");
});
