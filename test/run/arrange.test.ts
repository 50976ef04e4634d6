import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import { indexFacts, JobIndex } from "../../src/archive/index-file.js";
import { credits } from "../../src/core/money.js";
import type { Disk } from "../../src/core/ports/disk.js";
import type { Run } from "../../src/core/ports/store.js";
import { arrange } from "../../src/run/arrange.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import { openWorkspace } from "../../src/store/workspace/workspace.js";
import { systemError, watchedDisk } from "../archive/watched-disk.js";
import { ManualClock } from "../manual-clock.js";
import { newItem, runStart } from "../store/item-fixture.js";
import { silentLog } from "./harness.js";

/** Many files: a sheet that numbers its outputs gives each of them another name when a row is added. */
const files = 60;

let store: Store;
afterEach(() => store.close());

/** The archive of a run whose files are named after these numbers; each contains the number of its row. */
async function archived(
  names: readonly (number | string)[],
): Promise<{ folder: string; start: () => Promise<Run> }> {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-arrange-"));
  const clock = new ManualClock();
  store = openWorkspace({ stateFile: join(folder, "state.db"), root: folder }, clock);
  const { id: jobId } = await store.job("demo");
  const start = () => store.startRun(jobId, { ...runStart, outFolder: join(folder, "outputs") });
  const jobFolder = join(folder, "outputs", "demo");
  mkdirSync(jobFolder, { recursive: true });
  const run = await start();
  await store.enroll(run.id, rows(names));
  const index = await JobIndex.open(nodeDisk, jobFolder);
  for (const item of await store.items(run.id)) {
    const intent = { runId: run.id, sentAt: clock.now(), bodySha256: "00", spendLogId: null };
    const attempt = await store.intend(item.id, intent);
    const taskId = `task of ${item.rowId}`;
    await store.conclude(attempt.id, "accepted", { taskId, charged: credits(4), nextAt: 0 });
    const ended = { fetchBy: 0, charged: credits(4), createdAt: "", completedAt: "" };
    await store.complete(item.id, { ...ended, urls: ["https://a/1"] });
    const content = item.rowId.padStart(3, "0");
    const sha256 = createHash("sha256").update(content).digest("hex");
    const saved = { file: `${item.name}.png`, bytes: 3, sha256, mime: "image/png", check: "decoded" };
    writeFileSync(join(jobFolder, saved.file), content);
    await index.add({
      ...indexFacts(item, await store.attempt(item.id)),
      ...saved,
      output: 1,
      saved: "2026-11-20T12:00:00Z",
      bulkgen: "1",
    });
    await store.saved(item.id, 1, saved);
  }
  await store.setRun(run.id, { state: "finished", endedAt: clock.now() });
  return { folder: jobFolder, start };
}

function rows(names: readonly (number | string)[]) {
  return names.map((name, row) => newItem(`${row}`, { position: row, name: `${name}` }));
}

/** How often the index is asked while the files get these names, and the rows of the files by name. */
async function renamed(from: readonly number[], to: readonly number[]) {
  const { folder, start } = await archived(from);
  const run = await start();
  await store.enroll(run.id, rows(to));
  let asked = 0;
  const index = await JobIndex.open(nodeDisk, folder);
  const identityAt = index.identityAt.bind(index);
  index.identityAt = (file) => {
    asked++;
    return identityAt(file);
  };
  await arrange({ store, disk: nodeDisk, log: silentLog }, run, async () => index);
  const found = readdirSync(folder).filter((name) => name.endsWith(".png"));
  const rowOf = (name: string) => Number(readFileSync(join(folder, name), "utf8"));
  return { asked, found: new Map(found.map((name) => [Number.parseInt(name, 10), rowOf(name)])) };
}

const upTo = Array.from({ length: files }, (_, row) => row);

test.each([
  ["up by one", (row: number) => row + 1],
  ["down by one", (row: number) => row - 1],
  ["round by one, a ring of all files", (row: number) => (row + 1) % files],
  ["round the other way", (row: number) => (row + files - 1) % files],
  ["to the reverse, a ring of each two", (row: number) => files - 1 - row],
  ["into rings of many lengths", (row: number) => (row * 7 + 3) % files],
])("files move %s: the index is asked a few times for each, not once for every other", async (_, to) => {
  const names = upTo.map((row) => to(row) + 1);
  const { asked, found } = await renamed(
    upTo.map((row) => row + 1),
    names,
  );
  expect(found).toEqual(new Map(names.map((name, row) => [name, row])));
  expect(asked).toBeLessThan(15 * files);
});

/** A disk that takes names for one which differ in capitals alone, as those of macOS and Windows do. */
function withoutCase(disk: Disk): Disk {
  const there = (path: string) => {
    const alike = (name: string) => name.toLowerCase() === basename(path).toLowerCase();
    const name = readdirSync(dirname(path)).find(alike);
    return name === undefined ? path : join(dirname(path), name);
  };
  return {
    ...disk,
    link: (from, to, content) => disk.link(there(from), there(to), content),
    unlink: (path) => disk.unlink(there(path)),
    size: (path) => disk.size(there(path)),
    read: (path, range) => disk.read(there(path), range),
  };
}

describe.each([
  ["heeds capitals", nodeDisk],
  ["ignores capitals", withoutCase(nodeDisk)],
])("names that differ in capitals alone, on a disk that %s", (_, disk) => {
  const pictures = (folder: string) => readdirSync(folder).filter((name) => name.endsWith(".png"));
  /** Arranges the files under these names, and returns the index. */
  async function arranged(folder: string, start: () => Promise<Run>, names: readonly string[], on = disk) {
    const run = await start();
    await store.enroll(run.id, rows(names));
    const open = () => JobIndex.open(on, folder);
    await arrange({ store, disk: on, log: silentLog }, run, open);
    return JobIndex.open(disk, folder);
  }

  test("are given like any other, and the index says so", async () => {
    const { folder, start } = await archived(["c", "Vase", "jug"]);
    const index = await arranged(folder, start, ["C", "vase", "jug"]);
    expect(pictures(folder)).toEqual(["C.png", "jug.png", "vase.png"]);
    expect(
      index
        .all()
        .map(({ file }) => file)
        .toSorted(),
    ).toEqual(["C.png", "jug.png", "vase.png"]);
    expect((await store.files("demo")).map(({ file }) => file).toSorted()).toEqual([
      "C.png",
      "jug.png",
      "vase.png",
    ]);
  });

  test("also where a file follows another in a ring", async () => {
    const { folder, start } = await archived(["cup", "jug"]);
    await arranged(folder, start, ["JUG", "Cup"]);
    expect(pictures(folder)).toEqual(["Cup.png", "JUG.png"]);
    expect(readFileSync(join(folder, "JUG.png"), "utf8")).toBe("000");
  });

  test("P13: wherever the process ends, the file is there, and the next run finishes it", async () => {
    for (let end = 1, ended = true; ended; end++) {
      const { folder, start } = await archived(["c"]);
      let step = 0;
      let isMoving = false;
      ended = false;
      const watched = watchedDisk(disk, (what) => {
        isMoving ||= what === "link";
        if (!isMoving || ++step < end) return;
        ended = true;
        throw systemError("EIO");
      });
      await arranged(folder, start, ["C"], watched);
      const [line] = (await JobIndex.open(disk, folder)).all();
      expect(await disk.size(join(folder, line?.file ?? "")), `after ${end} steps`).toBe(3);
      await arranged(folder, start, ["C"]);
      expect(pictures(folder), `after ${end} steps`).toEqual(["C.png"]);
      await store.close();
    }
    expect.hasAssertions();
  });
});
