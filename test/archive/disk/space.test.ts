import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { freeFor, refusalNow, reserveBytes } from "../../../src/archive/disk/space.js";
import { systemError } from "../watched-disk.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "bulkgen-room-"));
});
afterEach(() => rm(folder, { recursive: true }));

const having = (bytes: number) => ({ ...nodeDisk, freeBytes: async () => bytes });

describe("the room for a job's files", () => {
  test("P17: is what is left beside the reserve, and a refusal says both and what to do", async () => {
    expect(await refusalNow(having(reserveBytes), folder)).toBeNull();
    expect(await refusalNow(having(15_970_304), folder)).toEqual({
      kind: "disk",
      code: "ENOSPC",
      reason: `disk full, 16 MB free and 67.1 MB needed (${folder})`,
    });
  });

  test("is that of the nearest folder above that is there, and nothing is made", async () => {
    const asked: string[] = [];
    const disk = {
      ...nodeDisk,
      freeBytes: (path: string) => {
        asked.push(path);
        return nodeDisk.freeBytes(path);
      },
    };
    expect(await freeFor(disk, join(folder, "outputs", "demo"))).toBeGreaterThan(0);
    expect(asked).toEqual([join(folder, "outputs", "demo"), join(folder, "outputs"), folder]);
    expect(await nodeDisk.list(folder)).toEqual([]);
    await symlink(join(folder, "gone"), join(folder, "link"));
    expect(await freeFor(nodeDisk, join(folder, "link"))).toBeGreaterThan(0);
  });

  test("P17: that cannot be asked for is refused as a save would be", async () => {
    await writeFile(join(folder, "file"), "");
    expect(await refusalNow(nodeDisk, join(folder, "file", "demo"))).toMatchObject({
      kind: "disk",
      code: "ENOTDIR",
    });
    const gone = { ...nodeDisk, freeBytes: () => Promise.reject(systemError("ENOENT")) };
    expect(await refusalNow(gone, folder)).toMatchObject({ kind: "disk", code: "ENOENT" });
  });

  test("is no way to hide a defect of the program", async () => {
    const broken = { ...nodeDisk, freeBytes: () => Promise.reject(new TypeError("a defect")) };
    await expect(refusalNow(broken, folder)).rejects.toThrow("a defect");
  });
});
