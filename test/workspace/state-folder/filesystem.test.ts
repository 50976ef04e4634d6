import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fileSystemOf, filesystemInfo, syncedBy } from "../../../src/workspace/state-folder/filesystem.js";

const linux = [
  "/dev/sda1 / ext4 rw 0 0",
  "server:/pool /mnt/pool nfs4 rw 0 0",
  "/dev/sdb1 /mnt/pool/local xfs rw 0 0",
  "//nas/share /mnt/our\\040share cifs rw 0 0",
  "overlay /twice overlay rw 0 0",
  "me@host: /twice fuse.sshfs rw 0 0",
  "",
].join("\n");

const mac = [
  "/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)",
  "//ada@nas._smb._tcp.local/our%20share on /Volumes/our share (smbfs, nodev, nosuid, mounted by ada)",
  "server:/pool on /Volumes/pool (nfs)",
].join("\n");

describe("the file system of a path", () => {
  test.each([
    [linux, "/var/lib", "ext4"],
    [linux, "/mnt/pool/work", "nfs4"],
    [linux, "/mnt/pool", "nfs4"],
    [linux, "/mnt/pool/local/work", "xfs"],
    [linux, "/mnt/pools", "ext4"],
    [linux, "/mnt/our share/jobs", "cifs"],
    [linux, "/twice/work", "fuse.sshfs"],
    [mac, "/private/jobs", "apfs"],
    [mac, "/Volumes/our share/jobs", "smbfs"],
    [mac, "/Volumes/pool/jobs", "nfs"],
  ])("by the mount table %#, of %s is %s", (mounts, path, type) =>
    expect(fileSystemOf(path, mounts)).toBe(type),
  );
});

describe("a synced folder", () => {
  test.each([
    ["/base/Dropbox/work", "Dropbox"],
    ["/base/Dropbox (Studio)/jobs", "Dropbox"],
    ["/base/OneDrive - Studio/work", "OneDrive"],
    ["/base/Library/Mobile Documents/com~apple~CloudDocs/work", "iCloud"],
    ["/base/Library/CloudStorage/GoogleDrive-ada@example.com/My Drive", "Google Drive"],
    ["/base/Nextcloud/work", "Nextcloud"],
    ["/base/dropbox-exports/work", null],
    ["/base/work/iCloudy", null],
  ])("%s belongs by its name to %s", (path, owner) => expect(syncedBy(path)).toBe(owner));

  test.each([
    [".stfolder", "Syncthing"],
    [".nextcloudsync.log", "Nextcloud"],
    [".dropbox", "Dropbox"],
    [".tmp.drivedownload", "Google Drive"],
  ])("with %s in it or above belongs to %s", (marker, owner) => {
    const folder = mkdtempSync(join(tmpdir(), "bulkgen-ground-"));
    mkdirSync(join(folder, "deep", "er"), { recursive: true });
    expect(syncedBy(join(folder, "deep", "er"))).toBeNull();
    writeFileSync(join(folder, marker), "");
    expect(syncedBy(join(folder, "deep", "er"))).toBe(owner);
  });
});

describe("the ground of a folder", () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "bulkgen-ground-")));
  const on = (type: string) => `x / ${type} rw 0 0`;
  const standing = (mounts: string | null) => filesystemInfo(join(folder, "not", "yet"), mounts);

  test.each(["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.rclone", "fuse.sshfs", "davfs2"])(
    "on %s holds no database",
    (type) => expect(standing(on(type))).toEqual({ path: folder, type, trouble: type, known: false }),
  );

  test.each([
    ["ext4", true],
    ["btrfs", true],
    ["overlay", true],
    ["fuseblk", false],
    ["fuse.ntfs-3g", false],
    ["squashy", false],
  ])("on %s may hold one; its locks are known to work: %s", (type, known) =>
    expect(standing(on(type))).toEqual({ path: folder, type, trouble: null, known }),
  );

  test("without a mount table is unknown", () =>
    expect(standing(null)).toEqual({ path: folder, type: null, trouble: null, known: false }));
});
