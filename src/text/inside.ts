import { realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { leaves } from "./within.js";

/** Whether an absolute path lies outside a folder, whatever links lead there. What does not exist yet is judged by its folder. */
export function leavesReally(folder: string, path: string): boolean {
  return leaves(realPath(folder), realPath(path));
}

/**
 * Whether a file that a manifest names lies outside of the manifest's folder, by its path or by a link. It may be a secret of
 * the user's, and the manifest somebody else's.
 */
export function isOutside(folder: string, name: string): boolean {
  const path = resolve(folder, name);
  return isAbsolute(name) || leaves(resolve(folder), path) || leavesReally(resolve(folder), path);
}

/** The path without links, as far as it can be followed: nobody can read what is behind a folder that is closed, or in a loop. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    const parent = dirname(path);
    if (parent === path) throw error;
    return join(realPath(parent), basename(path));
  }
}
