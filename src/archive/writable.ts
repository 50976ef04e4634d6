import { lstatSync, type Stats } from "node:fs";
import { join } from "node:path";
import { foldName, safeName } from "./disk/names.js";
import { indexName } from "./index-file.js";

/** What the archive itself writes at the top of a job's folder: no folder of outputs can have its name. */
const ownFiles = new Set([indexName]);

/** Why nothing can be saved in a job's folder; null if nothing that is there is in the way. */
export function unwritableFolder(jobFolder: string): string | null {
  const there = foundAt(jobFolder, true);
  if (there !== null && !there.isDirectory()) return `${jobFolder} is a file`;
  const index = foundAt(join(jobFolder, indexName), false);
  if (index === null || index.isFile()) return null;
  return `${join(jobFolder, indexName)} is ${index.isDirectory() ? "a folder" : "a symbolic link"}`;
}

/**
 * Says of an output's name why no file can be saved under it in the job's folder, as things are now; null if one can.
 * Looks once at each folder.
 */
export function unwritableNames(jobFolder: string): (name: string) => string | null {
  const known = new Map<string, string | null>();
  const folderTrouble = (folder: string): string | null => {
    let trouble = known.get(folder);
    if (trouble === undefined) {
      trouble = troubleOf(jobFolder, folder);
      known.set(folder, trouble);
    }
    return trouble;
  };
  return (name) => {
    if (!/[/\\]/.test(name)) return null;
    const levels = safeName(name).split("/").slice(0, -1);
    for (let depth = 1; depth <= levels.length; depth++) {
      const trouble = folderTrouble(levels.slice(0, depth).join("/"));
      if (trouble !== null) return trouble;
    }
    return null;
  };
}

function troubleOf(jobFolder: string, folder: string): string | null {
  if (ownFiles.has(foldName(folder))) return `${folder} is a file of bulkgen's own`;
  const there = foundAt(join(jobFolder, folder), false);
  if (there === null || there.isDirectory()) return null;
  return `${join(jobFolder, folder)} is ${there.isSymbolicLink() ? "a symbolic link" : "a file"}`;
}

/** What is there; null if nothing is, or if it cannot be seen, which a save will find out. */
function foundAt(path: string, follow: boolean): Stats | null {
  try {
    const found = lstatSync(path);
    if (!follow || !found.isSymbolicLink()) return found;
    return lstatSync(join(path, "."));
  } catch {
    return null;
  }
}
