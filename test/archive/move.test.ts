import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import { Indexes, type IndexLine, identityOf, JobIndex, writeSidecar } from "../../src/archive/index-file.js";
import { moveFile, supersede } from "../../src/archive/move.js";
import type { Disk } from "../../src/core/ports/disk.js";
import { systemError, watchedDisk } from "./watched-disk.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-move-"));
});

async function archived(file: string, content = file): Promise<IndexLine> {
  mkdirSync(join(folder, file, ".."), { recursive: true });
  writeFileSync(join(folder, file), content);
  const line: IndexLine = {
    item: "a",
    key: `k1:${file}`,
    task: `t-${file}`,
    external_task: null,
    model: "m",
    prompt: "p",
    params: {},
    inputs: {},
    credits: 1,
    created: null,
    completed: null,
    output: 1,
    file,
    bytes: Buffer.byteLength(content),
    sha256: createHash("sha256").update(content).digest("hex"),
    mime: "image/png",
    check: "decoded",
    saved: "2026-01-01T00:00:00Z",
    bulkgen: "0",
  };
  await (await index()).add(line);
  return line;
}

function index(disk: Disk = nodeDisk) {
  return new Indexes(disk).of(folder);
}

function names(): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "index.jsonl")
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted();
}

describe("a file that is moved", () => {
  test("is in the index under its new name alone, also for who reads it later, and its old name is free", async () => {
    const line = await archived("a.png");
    expect(await moveFile(nodeDisk, folder, await index(), { line, name: "deep/b", item: "b" })).toBe(
      "deep/b.png",
    );
    expect(names()).toEqual(["deep/b.png"]);
    const later = await index();
    expect(later.find(identityOf(line))).toMatchObject({ file: "deep/b.png", item: "b" });
    expect(later.identityAt("a.png")).toBeUndefined();
    const other = await archived("a.png", "other");
    expect(await moveFile(nodeDisk, folder, await index(), { line: other, name: "deep/b" })).toBe(
      "deep/b-2.png",
    );
  });

  test("replaces nothing: neither indexed files nor unknown ones", async () => {
    await archived("b.png");
    writeFileSync(join(folder, "b-2.png"), "somebody's own");
    const line = await archived("a.png");
    expect(await moveFile(nodeDisk, folder, await index(), { line, name: "b" })).toBe("b-3.png");
    expect(names()).toEqual(["b-2.png", "b-3.png", "b.png"]);
  });

  test("never shares a name with another output, though both have the same content", async () => {
    const first = await archived("a.png", "same");
    const second = await archived("b.png", "same");
    const opened = await index();
    expect(await moveFile(nodeDisk, folder, opened, { line: first, name: "c" })).toBe("c.png");
    expect(await moveFile(nodeDisk, folder, opened, { line: second, name: "c" })).toBe("c-2.png");
    expect(names()).toEqual(["c-2.png", "c.png"]);
  });

  test("whose name differs in capitals alone stays as it is", async () => {
    const line = await archived("Cup.png");
    expect(await moveFile(nodeDisk, folder, await index(), { line, name: "cup" })).toBe("Cup.png");
    expect(names()).toEqual(["Cup.png"]);
  });

  test("is put away under its own name, numbered where that is taken", async () => {
    const line = await archived("sub/a.png");
    expect(await supersede(nodeDisk, folder, await index(), line)).toBe("_superseded/sub/a.png");
    const next = await archived("sub/a.png", "next");
    expect(await supersede(nodeDisk, folder, await index(), { ...next, key: "k1:x" })).toBe(
      "_superseded/sub/a-2.png",
    );
  });

  test("P13: has a durable name at every step, wherever the process ends, and the next move finishes it", async () => {
    const line = await archived("a.png");
    for (let end = 1; ; end++) {
      const ended = await movedUntil(line, end);
      expect(names().length, `after ${end} steps`).toBeGreaterThan(0);
      const now = (await index()).find(identityOf(line)) as IndexLine;
      expect(names(), `the index is right after ${end} steps`).toContain(now.file);
      const finished = await moveFile(nodeDisk, folder, await index(), { line: now, name: "b" });
      expect(finished).toBe("b.png");
      if (!ended) return;
      const again = (await index()).find(identityOf(line)) as IndexLine;
      for (const name of names().filter((one) => one !== "b.png")) await nodeDisk.unlink(join(folder, name));
      await moveFile(nodeDisk, folder, await index(), { line: again, name: "a" });
      expect(names()).toEqual(["a.png"]);
    }
  });

  /** True when the process ended at that step. */
  async function movedUntil(line: IndexLine, end: number): Promise<boolean> {
    let step = 0;
    let order = "";
    let isMoving = false;
    const disk = watchedDisk(nodeDisk, (what) => {
      if (!isMoving) return;
      order += ` ${what}`;
      if (++step === end) throw systemError("EIO");
    });
    const opened = await JobIndex.open(disk, folder);
    const now = opened.find(identityOf(line)) as IndexLine;
    isMoving = true;
    try {
      await moveFile(disk, folder, opened, { line: now, name: "b" });
      expect(order).toMatch(/link syncFolder( size)? append syncFolder unlink syncFolder$/);
      return false;
    } catch (error) {
      expect((error as { code?: string }).code).toBe("EIO");
      return true;
    }
  }
});

test("a sidecar moves along, says where its file is now, and frees its name", async () => {
  const line = await archived("a.png");
  await writeSidecar(nodeDisk, folder, folder, line);
  const opened = await index();
  await opened.learnNames(".");
  await supersede(nodeDisk, folder, opened, line);
  expect(names()).toEqual(["_superseded/a.json", "_superseded/a.png"]);
  const sidecar = JSON.parse(readFileSync(join(folder, "_superseded/a.json"), "utf8"));
  expect(sidecar.file).toBe("_superseded/a.png");
  expect([opened.identityAt("a.png"), opened.identityAt("a.json")]).toEqual([undefined, undefined]);
});

test("a folder that is listed while a file leaves it does not keep its name taken", async () => {
  const line = await archived("a.png");
  const listing: Promise<void>[] = [];
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  // What the list saw is old by the time that it is known.
  const opened = await index({
    ...nodeDisk,
    async list(path) {
      const names = readdirSync(path);
      if (listing.length > 0) await finished;
      return names;
    },
  });
  const disk = watchedDisk(nodeDisk, (step, path) => {
    if (step !== "unlink" || !path.endsWith("/a.png")) return;
    listing.push(Promise.resolve());
    listing.push(opened.learnNames("."));
  });
  await supersede(disk, folder, opened, line);
  finish();
  await Promise.all(listing);
  expect(listing).toHaveLength(2);
  expect(opened.identityAt("a.png")).toBeUndefined();
});
