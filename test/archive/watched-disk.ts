import type { Disk } from "../../src/core/ports/disk.js";

type Step = keyof Disk | "write" | "empty" | "sync" | "close";

/**
 * The given disk, with a look at every step before it is done. What `before` throws is what the disk answers, so a
 * test can record the order, fill the disk, or end the process at any step.
 */
export function watchedDisk(disk: Disk, before: (step: Step, path: string) => void): Disk {
  return {
    makeFolder: (path) => tell("makeFolder", path, () => disk.makeFolder(path)),
    create: (path) =>
      tell("create", path, async () => {
        const file = await disk.create(path);
        return {
          write: (bytes) => tell("write", path, () => file.write(bytes)),
          empty: () => tell("empty", path, () => file.empty()),
          sync: () => tell("sync", path, () => file.sync()),
          // The system closes what a dead process had open.
          close: () => tell("close", path, async () => {}).finally(() => file.close()),
        };
      }),
    append: (path, text) => tell("append", path, () => disk.append(path, text)),
    link: (from, to) => tell("link", to, () => disk.link(from, to)),
    unlink: (path) => tell("unlink", path, () => disk.unlink(path)),
    syncFolder: (path) => tell("syncFolder", path, () => disk.syncFolder(path)),
    realPath: (path) => tell("realPath", path, () => disk.realPath(path)),
    size: (path) => tell("size", path, () => disk.size(path)),
    list: (path) => tell("list", path, () => disk.list(path)),
    async *read(path, range) {
      before("read", path);
      yield* disk.read(path, range);
    },
    freeBytes: (path) => tell("freeBytes", path, () => disk.freeBytes(path)),
  };

  async function tell<Result>(step: Step, path: string, act: () => Promise<Result>): Promise<Result> {
    before(step, path);
    return act();
  }
}

/** An error as the system would give it. */
export function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: as the test wants it`), { code });
}
