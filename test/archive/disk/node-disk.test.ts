import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  statfs,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { nodeDisk, renameToFreeName } from "../../../src/archive/disk/node-disk.js";
import { findLeftovers, removeLeftovers } from "../../../src/archive/disk/temporary.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "bulkgen-disk-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function content(path: string, range?: { start: number; end: number }): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of nodeDisk.read(path, range)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

test("folders are made with those above them, once or twice", async () => {
  const path = join(folder, "a/b/c");
  await nodeDisk.makeFolder(path);
  await nodeDisk.makeFolder(path);
  expect((await stat(path)).isDirectory()).toBe(true);
});

test("P13: a new file never takes a name that is taken", async () => {
  const path = join(folder, "a");
  const file = await nodeDisk.create(path);
  await file.write(Buffer.from("one "));
  await file.write(Buffer.from("two"));
  await file.sync();
  await file.close();
  expect(await content(path)).toBe("one two");
  await expect(nodeDisk.create(path)).rejects.toMatchObject({ code: "EEXIST" });
});

test("a file that is emptied begins anew", async () => {
  const path = join(folder, "a");
  const file = await nodeDisk.create(path);
  await file.write(Buffer.from("a long beginning"));
  await file.empty();
  await file.write(Buffer.from("one "));
  await file.write(Buffer.from("two"));
  await file.close();
  expect(await content(path)).toBe("one two");
});

test("no file stays open, whatever was done with it", async () => {
  const path = join(folder, "a");
  const file = await nodeDisk.create(path);
  await file.close();
  await nodeDisk.append(path, "one\n");
  await nodeDisk.syncFolder(folder);
  await renameToFreeName(path, join(folder, "b"));
  for await (const _ of nodeDisk.read(join(folder, "b"))) break;
  // Linux alone lists them.
  const open = await readdir("/proc/self/fd").catch(() => []);
  const paths = await Promise.all(open.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
  expect(paths.filter((each) => each.startsWith(folder))).toEqual([]);
});

test("what is no folder, and what is below a file, is an error and not missing", async () => {
  await writeFile(join(folder, "a"), "");
  await expect(nodeDisk.size(join(folder, "a/b"))).rejects.toMatchObject({ code: "ENOTDIR" });
  await expect(nodeDisk.list(join(folder, "a"))).rejects.toMatchObject({ code: "ENOTDIR" });
});

test("the free bytes are those that the system leaves to users", async () => {
  const { bavail, bsize } = await statfs(folder);
  expect((await nodeDisk.freeBytes(folder)) / (bavail * bsize)).toBeCloseTo(1, 0);
});

test.each([
  ["link", nodeDisk.link],
  ["the way without hard links", renameToFreeName],
])("P13: %s gives a name, and replaces nothing", async (_, give) => {
  const [from, to, taken] = [join(folder, "from"), join(folder, "to"), join(folder, "taken")];
  await writeFile(from, "new");
  await writeFile(taken, "old");
  await expect(give(from, taken)).rejects.toMatchObject({ code: "EEXIST" });
  expect(await readFile(taken, "utf8")).toBe("old");
  await give(from, to);
  expect(await readFile(to, "utf8")).toBe("new");
});

test("without hard links, a move that fails leaves no empty file under the name", async () => {
  await expect(renameToFreeName(join(folder, "absent"), join(folder, "to"))).rejects.toMatchObject({
    code: "ENOENT",
  });
  expect(await nodeDisk.size(join(folder, "to"))).toBeNull();
});

test("text is appended, and not through a symbolic link", async () => {
  const path = join(folder, "a");
  await nodeDisk.append(path, "one\n");
  await nodeDisk.append(path, "two\n");
  expect(await readFile(path, "utf8")).toBe("one\ntwo\n");
  await symlink(path, join(folder, "planted"));
  await expect(nodeDisk.append(join(folder, "planted"), "x")).rejects.toMatchObject({ code: "ELOOP" });
});

test("P13: who asks for a folder's sync while one is in progress waits for the next, which they share", async () => {
  const done: string[] = [];
  const sync = (name: string) => nodeDisk.syncFolder(folder).then(() => done.push(name));
  await Promise.all([sync("first"), sync("second"), sync("third")]);
  expect(done).toEqual(["first", "second", "third"]);
  const missing = join(folder, "none");
  const refused = await Promise.allSettled([nodeDisk.syncFolder(missing), nodeDisk.syncFolder(missing)]);
  expect(refused.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await mkdir(missing);
  await nodeDisk.syncFolder(missing);
});

test("a range is read from its start up to its end, or the file's", async () => {
  const path = join(folder, "a");
  await writeFile(path, "0123456789");
  expect(await content(path, { start: 2, end: 5 })).toBe("234");
  expect(await content(path, { start: 8, end: 50 })).toBe("89");
  expect(await content(path, { start: 50, end: 60 })).toBe("");
});

test("a missing path has no size and no names; folders and links are distinguished", async () => {
  expect(await nodeDisk.size(join(folder, "absent"))).toBeNull();
  expect(await nodeDisk.list(join(folder, "absent"))).toEqual([]);
  await mkdir(join(folder, "sub"));
  await writeFile(join(folder, "file"), "");
  await symlink(folder, join(folder, "link"));
  expect((await nodeDisk.list(folder)).toSorted()).toEqual(["file", "link", "sub/"]);
  expect(await nodeDisk.freeBytes(folder)).toBeGreaterThan(0);
});

test("P13: what dead runs left is found and removed, and nothing else", async () => {
  await mkdir(join(folder, "sub"));
  await mkdir(join(folder, "outside"));
  const left = [".bulkgen-0123456789abcdef-1.part", "sub/.bulkgen-0123456789abcdef-12.part"].map((name) =>
    join(folder, name),
  );
  const kept = ["a.png", "mine.part", ".bulkgen-mine.part", "sub/b.png"].map((name) => join(folder, name));
  for (const path of [...left, ...kept]) await writeFile(path, "");
  await symlink(folder, join(folder, "sub", "loop"));
  expect(await findLeftovers(nodeDisk, folder)).toEqual(left);
  expect(await removeLeftovers(nodeDisk, folder)).toEqual(left);
  expect(await findLeftovers(nodeDisk, folder)).toEqual([]);
  for (const path of kept) expect(await nodeDisk.size(path)).toBe(0);
});
