import { extname, join, posix } from "node:path";
import type { Disk } from "../core/ports/disk.js";
import { folderBelow, foldName, holds, linked, numberedName, removeName } from "./disk/names.js";
import { type IndexLine, identityOf, type JobIndex, sidecarOf, writeSidecar } from "./index-file.js";

/** The folder for files whose row has changed. They stay in the index, and come back when the old prompt does. */
const supersededFolder = "_superseded";

/**
 * Renames a file of the archive to `name` plus its extension, or to the next free name like it; returns the name. The
 * new name is durable before the index says so, and the index says so before the old name is removed. So a crash
 * leaves two names for one file, and the next move removes one of them.
 * Rejects with errors of the disk.
 */
export async function moveFile(
  disk: Disk,
  jobFolder: string,
  index: JobIndex,
  { line, name, item = line.item }: { line: IndexLine; name: string; item?: string },
): Promise<string> {
  // Learn the names first: a later listing of the folder must not take the old name for an untracked file.
  await index.learnNames(posix.dirname(line.file));
  const folder = await folderBelow(disk, jobFolder, posix.dirname(name));
  const file = await freeName(disk, jobFolder, index, line, name);
  if (file === line.file) return file;
  await disk.syncFolder(folder);
  const moved = { ...line, file, item };
  const sidecar = join(jobFolder, sidecarOf(line.file));
  const hasSidecar = (await disk.size(sidecar)) !== null;
  if (hasSidecar) await writeSidecar(disk, jobFolder, folder, moved);
  await index.add(moved);
  await removeName(disk, join(jobFolder, line.file));
  if (hasSidecar) await removeName(disk, sidecar);
  await disk.syncFolder(join(jobFolder, posix.dirname(line.file)));
  for (const name of [line.file, ...(hasSidecar ? [sidecarOf(line.file)] : [])]) index.free(name);
  return file;
}

/** Moves a file away because another one takes its place. */
export function supersede(disk: Disk, jobFolder: string, index: JobIndex, line: IndexLine): Promise<string> {
  const stem = line.file.slice(0, -extname(line.file).length);
  return moveFile(disk, jobFolder, index, { line, name: `${supersededFolder}/${stem}` });
}

export function isSuperseded(file: string): boolean {
  return file.startsWith(`${supersededFolder}/`);
}

/** Links the file to the first free name, or finds the link of an earlier move. */
async function freeName(
  disk: Disk,
  jobFolder: string,
  index: JobIndex,
  line: IndexLine,
  name: string,
): Promise<string> {
  const identity = identityOf(line);
  await index.learnNames(posix.dirname(name));
  for (let number = 1; ; number++) {
    const file = numberedName(name, number, extname(line.file).slice(1));
    // Many filesystems ignore case.
    if (foldName(file) === foldName(line.file)) return line.file;
    const occupant = index.identityAt(file);
    if (typeof occupant === "string") continue;
    index.setIdentity(file, identity);
    const path = join(jobFolder, file);
    if (await linked(disk, join(jobFolder, line.file), path)) return file;
    if (await holds(disk, path, line)) return file;
    index.setIdentity(file, null);
  }
}
