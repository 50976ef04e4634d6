import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { inspect } from "../../src/archive/check/content.js";
import { handToBucket } from "../../src/archive/copies.js";
import { bucketDisk } from "../../src/archive/disk/bucket-disk.js";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import { removeLeftovers } from "../../src/archive/disk/temporary.js";
import { type Downloads, undiciDownloads } from "../../src/archive/download/download.js";
import {
  type Archive,
  dropReceived,
  openArchive,
  type ReceivedFile,
  type SaveRequest,
} from "../../src/archive/save.js";
import { openBucket } from "../../src/bucket/bucket.js";
import { s3Server } from "../bucket/s3-server.js";
import { ManualClock } from "../manual-clock.js";
import { media } from "./media.js";
import { serve, type TestServer } from "./server.js";

let server: TestServer;
let downloads: Downloads;
let root: string;
let folder: string;
let count = 0;
beforeAll(async () => {
  server = await serve();
  downloads = undiciDownloads({ baseUrl: server.url });
  root = await mkdtemp(join(tmpdir(), "bulkgen-handed-out-"));
});
afterAll(async () => {
  await server.close();
  await downloads.close();
  await rm(root, { recursive: true });
});
beforeEach(async () => {
  folder = join(root, `job-${++count}`);
  const picture = await media.png();
  server.answer((_, reply) => reply.writeHead(200, { "content-length": picture.length }).end(picture));
});

/** The archive of one process. */
function anArchive(disk = nodeDisk): Archive {
  const { download } = downloads;
  const check = (path: string, category: string) => inspect(nodeDisk, path, category);
  return openArchive({ disk, download, clock: new ManualClock(), inspect: check, version: "1" });
}

function wanted(task = "task-1"): SaveRequest {
  return {
    url: `${server.url}/out`,
    jobFolder: folder,
    name: "pots/teapot",
    outputNumber: 1,
    outputCount: 1,
    category: "image",
    index: {
      item: "teapot",
      key: "k1:teapot",
      task,
      external_task: null,
      model: "m",
      prompt: "a teapot",
      params: {},
      inputs: {},
      credits: 1,
      created: null,
      completed: null,
    },
  };
}

async function received(archive: Archive): Promise<ReceivedFile> {
  const outcome = await archive.receive(wanted(), new AbortController().signal);
  if (outcome.kind !== "received") throw new Error(`expected a file, got ${JSON.stringify(outcome)}`);
  return outcome;
}

const filesBelow = async () =>
  (await readdir(folder, { recursive: true })).filter((name) => name.includes(".")).toSorted();

test("P13: a file that another process received has no name, and no line, until it is placed", async () => {
  const [worker, run] = [anArchive(), anArchive()];
  const file = await received(worker);
  expect(await filesBelow()).toEqual([file.temporary]);
  expect(await run.known(wanted())).toBeNull();
  const saved = await run.place(wanted(), file);
  expect(saved).toMatchObject({ kind: "saved", file: "pots/teapot.png", sha256: file.sha256 });
  expect(await filesBelow()).toEqual(["index.jsonl", "pots/teapot.png"]);
  expect(await run.known(wanted())).toMatchObject({ kind: "saved", file: "pots/teapot.png" });
  expect(await readFile(join(folder, "index.jsonl"), "utf8")).toContain('"file":"pots/teapot.png"');
});

test("P13: two that received the same output do not have it in the archive twice", async () => {
  const [slow, fast, run] = [anArchive(), anArchive(), anArchive()];
  const late = await received(slow);
  const first = await received(fast);
  expect(late.temporary).not.toBe(first.temporary);
  await run.place(wanted(), first);
  // The late one is not heard, and removes its file.
  await dropReceived(nodeDisk, folder, late);
  expect(await filesBelow()).toEqual(["index.jsonl", "pots/teapot.png"]);
  // Even if both were heard, the second would be recognised by its content.
  const again = await received(slow);
  expect(await run.place(wanted(), again)).toMatchObject({ kind: "saved", file: "pots/teapot.png" });
  expect(await filesBelow()).toEqual(["index.jsonl", "pots/teapot.png"]);
});

test("P17: an index that cannot be read is trouble with the disk, which passes", async () => {
  await writeFile(folder, "a file in place of the folder");
  const known = await anArchive().known(wanted());
  await rm(folder);
  expect(known).toMatchObject({ kind: "disk" });
});

test("temporary files that go while they are removed are no trouble", async () => {
  await received(anArchive());
  const disk = {
    ...nodeDisk,
    async list(path: string) {
      const entries = await nodeDisk.list(path);
      for (const entry of entries) if (!entry.endsWith("/")) await rm(join(path, entry));
      return entries;
    },
  };
  expect(await removeLeftovers(disk, folder)).not.toEqual([]);
});

test("a received file that is gone or not whole is fetched again", async () => {
  const archive = anArchive();
  const again = ({ temporary }: ReceivedFile) => ({
    kind: "try_again",
    reason: `the downloaded file ${join(folder, temporary)} is gone or not whole`,
  });
  const gone = await received(archive);
  await removeLeftovers(nodeDisk, folder);
  expect(await archive.place(wanted(), gone)).toEqual(again(gone));
  const cut = await received(archive);
  await writeFile(join(folder, cut.temporary), "short");
  expect(await archive.place(wanted(), cut)).toEqual(again(cut));
});

test("P13: what a worker left in a bucket gets its name there, if it is what the worker says", async () => {
  const env = await s3Server();
  const bucket = openBucket({ bucket: "inputs", prefix: "" }, env);
  const lease = { disk: nodeDisk, bucket, jobFolder: folder };
  const job = posix.basename(folder.replaceAll("\\", "/"));
  const run = anArchive(bucketDisk(nodeDisk, bucket, folder, true));
  const other = await handToBucket({ ...lease, lease: "other" }, await received(anArchive()));
  // Another process has replaced it by a file of the same size.
  const path = join(root, "planted");
  await writeFile(path, "x".repeat(other.bytes));
  const sha256 = createHash("sha256").update("x".repeat(other.bytes)).digest("hex");
  await bucket.put(`${job}/${other.temporary}`, { path, bytes: other.bytes, sha256, mime: "image/png" });
  expect(await run.place(wanted(), other)).toMatchObject({ kind: "try_again" });
  const file = await handToBucket({ ...lease, lease: "own" }, await received(anArchive()));
  expect(await run.place(wanted(), file)).toMatchObject({
    kind: "saved",
    file: "pots/teapot.png",
    bucket: "s3://inputs",
    sha256: file.sha256,
  });
  expect(await bucket.list(`${job}/pots`)).toEqual([posix.basename(other.temporary), "teapot.png"]);
  expect(await filesBelow()).toEqual(["index.jsonl"]);
  expect(await run.known(wanted())).toMatchObject({ kind: "saved", bucket: "s3://inputs" });
});

test("P17: a disk that fails in either half of a save is trouble with the disk, which passes", async () => {
  await writeFile(folder, "a file in place of the folder");
  expect(await anArchive().receive(wanted(), new AbortController().signal)).toMatchObject({ kind: "disk" });
  await rm(folder);
  const file = await received(anArchive());
  await mkdir(join(folder, "index.jsonl"));
  expect(await anArchive().place(wanted(), file)).toMatchObject({ kind: "disk" });
});

test.each([
  "../outside.part",
  "../job/.bulkgen-0123456789abcdef-1.part",
  "pots/../.bulkgen-0123456789abcdef-1.part",
  "pots/teapot.png",
  "/etc/passwd",
])("P23: %s is not taken for a received file, whoever says so", async (temporary) => {
  const archive = anArchive();
  const file = { ...(await received(archive)), temporary };
  expect(await archive.place(wanted(), file)).toEqual({
    kind: "try_again",
    reason: `${temporary} is not a temporary file of the archive`,
  });
  expect(await filesBelow()).toHaveLength(1);
});

test("P23: a file of the archive is not removed as a received one, whoever says so", async () => {
  const archive = anArchive();
  const file = await received(archive);
  await archive.place(wanted(), file);
  await dropReceived(nodeDisk, folder, { ...file, temporary: "pots/teapot.png" });
  expect(await filesBelow()).toEqual(["index.jsonl", "pots/teapot.png"]);
});
