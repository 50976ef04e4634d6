import { realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { leaves } from "../../text/within.js";

/**
 * A workspace is moved and copied as a whole, so paths inside its folder are stored relative to it; other paths are
 * stored as they are. Standard input, `-`, is not a path.
 */
const inside = "./";

/** A path as the database and the receipts store it. Links are resolved: a folder may have several names. */
export function keptPath(root: string, path: string): string {
  if (!isAbsolute(path)) return path;
  return below(root, path) ?? below(realPath(root), join(realPath(dirname(path)), basename(path))) ?? path;
}

function below(root: string, path: string): string | null {
  return leaves(root, path) ? null : `${inside}${relative(root, path)}`;
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** The absolute path of a stored one, for a workspace that now lies in `root`. */
export function absolutePath(root: string, path: string): string {
  return path.startsWith(inside) ? resolve(root, path) : path;
}
