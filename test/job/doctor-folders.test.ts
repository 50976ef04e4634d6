import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fileSystemOf, stateFileSystem, syncedBy } from "../../src/job/doctor-folders.js";

const mounts = [
  "/dev/sda1 / ext4 rw 0 0",
  "server:/pool /mnt/pool nfs4 rw 0 0",
  "/dev/sdb1 /mnt/pool/local xfs rw 0 0",
  "//nas/share /mnt/our\\040share cifs rw 0 0",
  "overlay /twice overlay rw 0 0",
  "me@host: /twice fuse.sshfs rw 0 0",
  "",
].join("\n");

describe("the file system of a path", () => {
  test.each([
    ["/var/lib", "ext4"],
    ["/mnt/pool/work", "nfs4"],
    ["/mnt/pool", "nfs4"],
    ["/mnt/pool/local/work", "xfs"],
    ["/mnt/pools", "ext4"],
    ["/mnt/our share/jobs", "cifs"],
    ["/twice/work", "fuse.sshfs"],
  ])("of %s is %s", (path, type) => expect(fileSystemOf(path, mounts)).toBe(type));
});

describe("a synced folder", () => {
  test.each([
    ["/base/Dropbox/work", "Dropbox"],
    ["/base/Dropbox (Studio)/jobs", "Dropbox"],
    ["/base/OneDrive - Studio/work", "OneDrive"],
    ["/base/Library/Mobile Documents/com~apple~CloudDocs/work", "iCloud"],
    ["/base/Library/CloudStorage/GoogleDrive-ada@example.com/My Drive", "Google Drive"],
    ["/base/dropbox-exports/work", null],
    ["/base/work/iCloudy", null],
  ])("%s belongs to %s", (path, owner) => expect(syncedBy(path)).toBe(owner));
});

describe("the place of the state", () => {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-place-"));
  const state = (name: string) => join(folder, name, ".bulkgen");

  test("is judged by the nearest folder that exists", () => {
    mkdirSync(join(folder, "Dropbox"));
    expect(stateFileSystem(state("Dropbox"), mounts)).toMatchObject({
      state: "warning",
      got: expect.stringContaining("on Dropbox"),
      todo: expect.stringContaining("--workspace"),
    });
    expect(stateFileSystem(state("plain"), mounts)).toMatchObject({ state: "ok" });
  });

  test.each(["nfs", "cifs", "9p", "fuse.rclone"])("on %s is a warning", (type) => {
    expect(stateFileSystem(state("plain"), `x / ${type} rw 0 0`)).toMatchObject({ state: "warning" });
  });

  test.each(["ext4", "btrfs", "overlay", "fuseblk", "fuse.ntfs-3g"])("on %s is fine", (type) => {
    expect(stateFileSystem(state("plain"), `x / ${type} rw 0 0`)).toMatchObject({ state: "ok" });
  });

  test("is not known where the system does not tell", () => {
    expect(stateFileSystem(state("plain"), null)).toMatchObject({ state: "not checked", exit: null });
  });
});
