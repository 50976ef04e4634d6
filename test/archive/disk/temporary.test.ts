import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { refusalOf } from "../../../src/archive/disk/space.js";
import { openTemporary, temporaryName } from "../../../src/archive/disk/temporary.js";
import { openSqlite, statements } from "../../../src/sqlite.js";
import { systemError, watchedDisk } from "../watched-disk.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-temporary-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("temporary files are named after their output, numbered, and are known by their names", async () => {
  const all = [
    await openTemporary(nodeDisk, folder, "k1:a"),
    await openTemporary(nodeDisk, folder, "k1:a"),
    await openTemporary(nodeDisk, folder, "k1:b"),
  ];
  const names = all.map(({ path }) => basename(path));
  expect(names).toEqual([
    expect.stringMatching(/-1\.part$/),
    expect.stringMatching(/-2\.part$/),
    expect.stringMatching(/-1\.part$/),
  ]);
  expect(names[1]?.replace("-2.part", "-1.part")).toBe(names[0]);
  expect(names.every((name) => temporaryName.test(name))).toBe(true);
  for (const each of all) await each.discard();
  expect(readdirSync(folder)).toEqual([]);
});

test("a folder that is missing is made, also after it was removed", async () => {
  const missing = join(folder, "job");
  for (let time = 0; time < 2; time++) {
    const { path, release } = await openTemporary(nodeDisk, missing, "k1:a");
    await release();
    expect(readdirSync(missing)).toEqual([basename(path)]);
    rmSync(missing, { recursive: true });
  }
});

test.each([
  "bulkgen-0123456789abcdef-1.part",
  "x.bulkgen-0123456789abcdef-1.part",
  ".bulkgen-0123456789abcdef-1.part.png",
  ".bulkgen-0123456789abcde-1.part",
  ".bulkgen-0123456789abcdeg-1.part",
  ".bulkgen-0123456789abcdef-.part",
  ".bulkgen-0123456789abcdef-1_part",
])("%s is no temporary file", (name) => {
  expect(temporaryName.test(name)).toBe(false);
});

test("a temporary file is removed once, so that another's of the same name stays", async () => {
  const temporary = await openTemporary(nodeDisk, folder, "k1:a");
  await temporary.abandon();
  writeFileSync(temporary.path, "another's");
  await temporary.discard();
  await temporary.abandon();
  expect(readdirSync(folder)).toEqual([basename(temporary.path)]);
});

test("one that is released is closed and stays for another process", async () => {
  const temporary = await openTemporary(nodeDisk, folder, "k1:a");
  await temporary.release();
  await temporary.discard();
  expect(readdirSync(folder)).toEqual([basename(temporary.path)]);
  await expect(temporary.file.write(Buffer.from("x"))).rejects.toThrow();
});

test("only abandoning it makes its end durable, and trouble on the way there is none of the caller's", async () => {
  const steps: string[] = [];
  const disk = watchedDisk(nodeDisk, (step) => {
    steps.push(step);
    if (step !== "create") throw systemError("EIO");
  });
  await (await openTemporary(disk, folder, "k1:a")).discard();
  expect(steps).toEqual(["create", "close", "unlink"]);
  await (await openTemporary(disk, folder, "k1:b")).abandon();
  expect(steps.slice(3)).toEqual(["create", "close", "unlink", "syncFolder"]);
});

test("a folder that takes no files is told, and not tried again and again", async () => {
  const disk = watchedDisk(nodeDisk, () => {
    throw systemError("EACCES");
  });
  await expect(openTemporary(disk, folder, "k1:a")).rejects.toThrow("EACCES");
});

test("P17: the system's errors are refusals of the disk, and all others defects", () => {
  expect(refusalOf(systemError("E2BIG"), "/job")).toEqual({
    kind: "disk",
    code: "E2BIG",
    reason: "E2BIG: as the test wants it (/job)",
  });
  for (const code of ["ERR_INVALID_ARG_TYPE", "XEIO", "E", "Eio", 5])
    expect(() => refusalOf(Object.assign(new Error("x"), { code }), "/job")).toThrow("x");
});

/** A full disk, as a database without room for another page meets it. */
function fullDatabase(path: string): unknown {
  const db = openSqlite(path);
  try {
    db.exec("CREATE TABLE t (x)");
    db.pragma("max_page_count = 2");
    statements(db)("INSERT INTO t VALUES (?)").run(Buffer.alloc(9_000));
  } catch (error) {
    return error;
  } finally {
    db.close();
  }
}

test("P17: a database that meets a full disk says where: its own file, or what the index does not keep in memory", () => {
  const path = join(folder, "state.db");
  for (const [name, reason] of [
    ["", "database or disk is full (temporary files)"],
    [path, `${path}: database or disk is full`],
  ] as const)
    expect(refusalOf(fullDatabase(name), "/job")).toEqual({ kind: "disk", code: "ENOSPC", reason });
});
