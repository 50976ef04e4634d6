import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import {
  Indexes,
  type IndexLine,
  identityOf,
  indexFacts,
  JobIndex,
  sidecarOf,
  writeSidecar,
} from "../../src/archive/index-file.js";
import { credits } from "../../src/core/money.js";
import type { Disk } from "../../src/core/ports/disk.js";
import { newItem } from "../store/item-fixture.js";
import { indexLine } from "./index-line.js";
import { systemError, watchedDisk } from "./watched-disk.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-index-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = () => join(folder, "index.jsonl");
const text = () => readFileSync(path(), "utf8");
const json = (...lines: IndexLine[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join("");

async function reread(content: string): Promise<JobIndex> {
  writeFileSync(path(), content);
  return JobIndex.open(nodeDisk, folder);
}

describe("a line is", () => {
  const [a, b] = [indexLine("a.png"), indexLine("b.png")];

  test("of an output of a task of an item, by all three", () => {
    const identities = [a, indexLine("a.png", { task: "u" }), indexLine("a.png", { output: 2 }), b].map(
      identityOf,
    );
    expect(new Set(identities).size).toBe(4);
  });

  test.each<[string, string]>([
    ["was cut short", '{"key":"k1:a.png"'],
    ["is no JSON", "hello"],
    ["is nothing", "null"],
    ["is a number", "7"],
    ["has no key", JSON.stringify({ ...b, key: undefined })],
    ["has no task", JSON.stringify({ ...b, task: 7 })],
    ["has no file", JSON.stringify({ ...b, file: null })],
    ["has no hash", JSON.stringify({ ...b, sha256: undefined })],
    ["has no number of its output", JSON.stringify({ ...b, output: "1" })],
    ["has no length", JSON.stringify({ ...b, bytes: undefined })],
    ["points out of the folder", JSON.stringify({ ...b, file: "../b.png" })],
    ["points to a place of its own", JSON.stringify({ ...b, file: "/b.png" })],
    ["has a way round", JSON.stringify({ ...b, file: "sub/../b.png" })],
    ["has a name that no file can have", JSON.stringify({ ...b, file: "b\0.png" })],
  ])("left out if it %s, and the others count", async (_, wrong) => {
    const index = await reread(`${json(a)}${wrong}\n${json(indexLine("c.png"))}`);
    expect(index.all().map(({ file }) => file)).toEqual(["a.png", "c.png"]);
  });

  test("read where it is the last and lost its end of line, and where dots are in the name", async () => {
    const index = await reread(json(a, { ...b, file: "b..png" }).trimEnd());
    expect(index.all().map(({ file }) => file)).toEqual(["a.png", "b..png"]);
  });

  test("the latest of its output: the name that the output had before is free", async () => {
    const index = await reread(json(a, b, { ...a, file: "sub/a.png" }));
    expect(index.find(identityOf(a))?.file).toBe("sub/a.png");
    expect([index.identityAt("a.png"), index.identityAt("sub/a.png"), index.identityAt("b.png")]).toEqual([
      undefined,
      identityOf(a),
      identityOf(b),
    ]);
    expect(index.all()).toHaveLength(2);
  });

  test("the latest of its name: the output that had the name before has none", async () => {
    const index = await reread(json(a, { ...b, file: "A.png" }));
    expect(index.find(identityOf(a))).toBeUndefined();
    expect(index.identityAt("a.png")).toBe(identityOf(b));
    // An output that moves away does not take the name from the one that has it now.
    const moved = await reread(json(a, { ...b, file: "a.png" }, { ...a, file: "c.png" }));
    expect(moved.identityAt("a.png")).toBe(identityOf(b));
  });
});

describe("an index", () => {
  test("takes a line once, and is read again as it was", async () => {
    const index = await new Indexes(nodeDisk).of(folder);
    const line = indexLine("a.png");
    await index.add(line);
    await index.add({ ...line, check: "type" });
    expect(text()).toBe(json(line));
    await index.add({ ...line, sha256: "11" });
    await index.add({ ...line, sha256: "11", file: "b.png" });
    expect(text().match(/\n/g)).toHaveLength(3);
    expect((await JobIndex.open(nodeDisk, folder)).all()).toMatchObject([{ file: "b.png", sha256: "11" }]);
  });

  test("takes the line of a file that is in a bucket now, or no longer", async () => {
    const index = await new Indexes(nodeDisk).of(folder);
    const line = indexLine("a.png");
    for (const where of [{}, { bucket: "s3://b" }, { bucket: "s3://b" }, {}])
      await index.add({ ...line, ...where });
    expect(text()).toBe(json(line, { ...line, bucket: "s3://b" }, line));
  });

  test("keeps the line of a pruned file, whose name another may take", async () => {
    const index = await new Indexes(nodeDisk).of(folder);
    const pruned = indexLine("a.png", { check: "pruned 2026-11-28" });
    const other = indexLine("b.png", { file: "a.png" });
    await index.add(indexLine("a.png"));
    await index.add(pruned);
    expect(index.identityAt("a.png")).toBeUndefined();
    await index.add(other);
    for (const each of [index, await JobIndex.open(nodeDisk, folder)]) {
      expect(each.all()).toEqual([pruned, other]);
      expect(each.identityAt("a.png")).toBe(identityOf(other));
    }
  });

  test("keeps the name of an output that moves until it is freed: the file has both names for a while", async () => {
    const index = await reread(json(indexLine("a.png")));
    await index.add({ ...indexLine("a.png"), file: "b.png" });
    const own = identityOf(indexLine("a.png"));
    expect(["a.png", "b.png"].map((name) => index.identityAt(name))).toEqual([own, own]);
    index.free("a.png");
    expect(["a.png", "b.png"].map((name) => index.identityAt(name))).toEqual([undefined, own]);
  });

  test("begins a new line after one that was cut short, on the disk or by a write of its own", async () => {
    const index = await reread(`${json(indexLine("a.png"))}{"key`);
    await index.add(indexLine("b.png"));
    expect(text()).toBe(`${json(indexLine("a.png"))}{"key\n${json(indexLine("b.png"))}`);
    let isFull = true;
    const disk = watchedDisk(nodeDisk, (step) => {
      if (step === "append" && isFull) throw systemError("ENOSPC");
    });
    const full = await JobIndex.open(disk, folder);
    await expect(full.add(indexLine("c.png"))).rejects.toThrow("ENOSPC");
    expect(full.find(identityOf(indexLine("c.png")))).toBeUndefined();
    isFull = false;
    await full.add(indexLine("c.png"));
    await full.add(indexLine("d.png"));
    expect(text().endsWith(`\n\n${json(indexLine("c.png"), indexLine("d.png"))}`)).toBe(true);
    expect((await JobIndex.open(nodeDisk, folder)).all()).toHaveLength(4);
  });

  test("P13: a line that a killed process may not have synced is synced before it counts, once", async () => {
    const [first, second] = [indexLine("a.png"), indexLine("b.png")];
    writeFileSync(join(folder, "index.jsonl"), `${json(first, second)}{"key`);
    const synced: string[] = [];
    const disk = watchedDisk(nodeDisk, (step, path) => {
      if (step === "append" || step === "syncFolder") synced.push(path);
    });
    const index = await JobIndex.open(disk, folder);
    await index.add(first);
    expect(synced).toEqual([join(folder, "index.jsonl"), folder]);
    await index.add(second);
    expect(synced).toHaveLength(2);
    expect(text()).toBe(`${json(first, second)}{"key\n`);
  });

  test("knows the names of a folder, whatever their capitals; those without a line are nobody's", async () => {
    mkdirSync(join(folder, "sub/deep"), { recursive: true });
    writeFileSync(join(folder, "sub/Mine.PNG"), "");
    writeFileSync(join(folder, "sub/a.png"), "");
    const index = await reread(json(indexLine("sub/a.png")));
    expect(index.identityAt("sub/mine.png")).toBeUndefined();
    await index.learnNames("sub");
    expect(
      ["sub/mine.png", "SUB/A.png", "sub/deep", "sub/b.png"].map((name) => index.identityAt(name)),
    ).toEqual([null, identityOf(indexLine("sub/a.png")), null, undefined]);
    index.free("sub/MINE.png");
    await index.learnNames("sub");
    expect(index.identityAt("sub/mine.png")).toBeUndefined();
  });

  test("is read once by all, and again after an error", async () => {
    let reads = 0;
    let isBroken = true;
    const disk = watchedDisk(nodeDisk, (step) => {
      if (step === "size") reads++;
      if (isBroken && (step === "size" || step === "list")) throw systemError("EIO");
    });
    const indexes = new Indexes(disk);
    await expect(indexes.of(folder)).rejects.toThrow("EIO");
    isBroken = false;
    const [one, other] = await Promise.all([indexes.of(folder), indexes.of(folder)]);
    expect(one).toBe(other);
    expect(reads).toBe(2);
    isBroken = true;
    await expect(one.learnNames(".")).rejects.toThrow("EIO");
    isBroken = false;
    writeFileSync(join(folder, "a.png"), "");
    await one.learnNames(".");
    expect(one.identityAt("a.png")).toBeNull();
  });
});

describe("a sidecar", () => {
  test("has the name of its file with another ending, wherever dots are", () => {
    expect(["a.png", "a", "a.b/c", "a.b.png", "sub.x/a.png"].map(sidecarOf)).toEqual([
      "a.json",
      "a.json",
      "a.b/c.json",
      "a.b.json",
      "sub.x/a.json",
    ]);
  });

  test("is the line of its file, durable before it has its name, and leaves nothing else", async () => {
    const steps: string[] = [];
    const disk = watchedDisk(nodeDisk, (step) => steps.push(step));
    await writeSidecar(disk, folder, folder, indexLine("a.png"));
    expect(steps).toEqual(["create", "write", "sync", "link", "close", "unlink"]);
    expect(readFileSync(join(folder, "a.json"), "utf8")).toBe(
      `${JSON.stringify(indexLine("a.png"), null, 2)}\n`,
    );
    expect(await nodeDisk.list(folder)).toEqual(["a.json"]);
  });

  test("goes to the bucket that has its file, with its size and its hash", async () => {
    const noted: unknown[] = [];
    const disk: Disk = {
      ...nodeDisk,
      link(from, to, content) {
        noted.push(content);
        return nodeDisk.link(from, to);
      },
    };
    await writeSidecar(disk, folder, folder, indexLine("a.png"));
    await writeSidecar(disk, folder, folder, indexLine("b.png", { bucket: "s3://b" }));
    const bytes = readFileSync(join(folder, "b.json"));
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    expect(noted).toEqual([undefined, { bytes: bytes.length, sha256, mime: "application/json" }]);
  });

  test("that is there already stays, and a disk that refuses it is told", async () => {
    writeFileSync(join(folder, "a.json"), "mine");
    await writeSidecar(nodeDisk, folder, folder, indexLine("a.png"));
    expect(readFileSync(join(folder, "a.json"), "utf8")).toBe("mine");
    const disk = watchedDisk(nodeDisk, (step) => {
      if (step === "link") throw systemError("EROFS");
    });
    await expect(writeSidecar(disk, folder, folder, indexLine("b.png"))).rejects.toThrow("EROFS");
    expect(await nodeDisk.list(folder)).toEqual(["a.json"]);
  });
});

describe("the facts of an index line", () => {
  const item = newItem("cup", { params: { size: "2k" }, inputs: { image_url: "a.png" } });
  const facts = {
    item: "cup",
    key: "k1:cup",
    model: "picture",
    prompt: "a cup",
    params: { size: "2k" },
    inputs: { image_url: "a.png" },
  };

  test("are those of the item and of the task that made its files", () => {
    const task = {
      taskId: "t-1",
      externalTaskId: "x-1",
      charged: credits(4.5),
      createdAt: "2026-01-01T00:00:00Z",
      completedAt: "2026-01-01T00:00:09Z",
    };
    expect(indexFacts(item, task)).toEqual({
      ...facts,
      task: "t-1",
      external_task: "x-1",
      credits: 4.5,
      created: "2026-01-01T00:00:00Z",
      completed: "2026-01-01T00:00:09Z",
    });
    expect(indexFacts(item, { ...task, charged: credits(0) }).credits).toBe(0);
  });

  test("are the item's alone, where no task is known", () => {
    const none = { task: "", external_task: null, credits: null, created: null, completed: null };
    expect(indexFacts(item, null)).toEqual({ ...facts, ...none });
  });
});
