import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import {
  bucketRefusal,
  copyFault,
  copyIndex,
  copyTo,
  dropFromBucket,
  handToBucket,
  restoreFromCopy,
  savingCopies,
} from "../../src/archive/copies.js";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import type { SaveRequest, SaveResult } from "../../src/archive/save.js";
import { type Bucket, openBucket } from "../../src/bucket/bucket.js";
import { s3Server } from "../bucket/s3-server.js";
import { watchedDisk } from "./watched-disk.js";

const content = "a picture";
const sha256 = createHash("sha256").update(content).digest("hex");
const known = { identity: "k1:a", file: "sub/cup.png", bytes: content.length, sha256 };
const saved = { kind: "saved", ...known, mime: "image/png", check: "decoded" } as const;

let folder: string;
let bucket: Bucket;
beforeEach(async () => {
  const root = mkdtempSync(join(tmpdir(), "bulkgen-copies-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  folder = join(root, "cups");
  await nodeDisk.makeFolder(join(folder, "sub"));
  writeFileSync(join(folder, known.file), content);
  bucket = openBucket({ bucket: "inputs", prefix: "archive" }, await s3Server());
});

const noBucket = async () => openBucket({ bucket: "others", prefix: "" }, await s3Server());
const fault = (reads = true, of = known) => copyFault(bucket, folder, of, reads);

test("a copy has the name of the job's folder and of the file, and is good when it has the content", async () => {
  expect(await fault()).toBe("s3://inputs/archive does not have it");
  await copyTo(bucket, folder, saved);
  expect(await bucket.find("cups/sub/cup.png")).toEqual({ bytes: content.length, sha256 });
  expect([await fault(), await fault(false)]).toEqual([null, null]);
});

test("P16: a copy of other content is a fault, and a damaged one shows when it is read", async () => {
  await copyTo(bucket, folder, saved);
  const other = "s3://inputs/archive has other content";
  expect(await fault(true, { ...known, bytes: 5 })).toBe(other);
  expect(await fault(true, { ...known, sha256: "00" })).toBe(other);
  // The store says what was uploaded, and hands out something else.
  const damaged: Bucket = {
    ...bucket,
    async *read() {
      yield Buffer.from("a pixture");
    },
  };
  expect(await copyFault(damaged, folder, known, false)).toBeNull();
  expect(await copyFault(damaged, folder, known, true)).toBe("s3://inputs/archive has damaged content");
  rmSync(join(folder, known.file));
  expect(await restoreFromCopy(nodeDisk, damaged, folder, known)).toBe(false);
  expect(readdirSync(join(folder, "sub"))).toEqual([]);
});

test("P16: a lost file comes back from its copy, durable and whole, and nothing else is left", async () => {
  await copyTo(bucket, folder, saved);
  rmSync(join(folder, "sub"), { recursive: true });
  const steps: string[] = [];
  const disk = watchedDisk(nodeDisk, (step) => steps.push(step));
  expect(await restoreFromCopy(disk, bucket, folder, known)).toBe(true);
  expect(readFileSync(join(folder, known.file), "utf8")).toBe(content);
  expect(readdirSync(join(folder, "sub"))).toEqual(["cup.png"]);
  expect(steps.filter((step) => /^(write|sync|link|unlink|syncFolder)$/.test(step))).toEqual([
    "write",
    "sync",
    "link",
    "unlink",
    "syncFolder",
  ]);
});

test("no file comes back from a copy that is missing or of other content", async () => {
  rmSync(join(folder, known.file));
  expect(await restoreFromCopy(nodeDisk, bucket, folder, known)).toBe(false);
  writeFileSync(join(folder, known.file), content);
  await copyTo(bucket, folder, saved);
  rmSync(join(folder, known.file));
  expect(await restoreFromCopy(nodeDisk, bucket, folder, { ...known, bytes: 5 })).toBe(false);
  expect(await restoreFromCopy(nodeDisk, bucket, folder, { ...known, sha256: "00" })).toBe(false);
  expect(readdirSync(join(folder, "sub"))).toEqual([]);
});

test("an output is saved when the bucket has it too", async () => {
  const request = { jobFolder: folder } as SaveRequest;
  const save = (result: SaveResult, to: Bucket) => savingCopies(async () => result, to)(request);
  expect(await save(saved, bucket)).toEqual(saved);
  expect(await bucket.find("cups/sub/cup.png")).not.toBeNull();
  const expired = { kind: "expired", status: 403 } as const;
  expect(await save(expired, bucket)).toEqual(expired);
  expect(await save(saved, await noBucket())).toEqual({
    kind: "disk",
    code: "BUCKET",
    reason: expect.stringContaining("the bucket others does not exist"),
  });
  // What is no refusal of the bucket is a defect.
  const broken: Bucket = { ...bucket, put: () => Promise.reject(new TypeError("broken")) };
  await expect(save(saved, broken)).rejects.toThrow("broken");
});

const received = {
  kind: "received",
  temporary: "sub/cup.png",
  bytes: content.length,
  sha256,
  lengthStated: true,
  content: { kind: "media", extension: "png", mime: "image/png", check: "decoded" },
} as const;

test("what a worker received moves to the bucket under a name of its lease alone", async () => {
  const handed = await handToBucket({ disk: nodeDisk, bucket, jobFolder: folder, lease: "job 0" }, received);
  expect(readdirSync(join(folder, "sub"))).toEqual([]);
  writeFileSync(join(folder, known.file), content);
  const other = await handToBucket({ disk: nodeDisk, bucket, jobFolder: folder, lease: "job 1" }, received);
  expect(handed.temporary).toMatch(/^sub\/\.bulkgen-[0-9a-f]{16}-1\.part$/);
  expect(other.temporary).not.toBe(handed.temporary);
  for (const { temporary } of [handed, other])
    expect(await bucket.find(`cups/${temporary}`)).toEqual({ bytes: content.length, sha256 });
  await dropFromBucket(bucket, folder, other);
  expect([await bucket.find(`cups/${other.temporary}`), await bucket.list("cups/sub")]).toEqual([
    null,
    [handed.temporary.slice(4)],
  ]);
});

test("what the bucket does not take leaves this disk too: it is downloaded again", async () => {
  const to = { disk: nodeDisk, bucket: await noBucket(), jobFolder: folder, lease: "job 0" };
  await expect(handToBucket(to, received)).rejects.toThrow("does not exist");
  expect(readdirSync(join(folder, "sub"))).toEqual([]);
});

test("the index is copied as it is, and nothing where there is none", async () => {
  await copyIndex(nodeDisk, bucket, folder);
  expect(await bucket.list("cups")).toEqual([]);
  writeFileSync(join(folder, "index.jsonl"), content);
  await copyIndex(nodeDisk, bucket, folder);
  expect(await bucket.find("cups/index.jsonl")).toEqual({ bytes: content.length, sha256 });
});

test("a bucket that cannot be used refuses every file, with the reason", async () => {
  expect(await bucketRefusal(bucket)).toBeNull();
  expect(await bucketRefusal(await noBucket())).toMatchObject({ kind: "disk", code: "BUCKET" });
});
