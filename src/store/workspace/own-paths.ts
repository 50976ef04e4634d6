import { realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import type { Sqlite } from "../../sqlite.js";

/**
 * A workspace is moved and copied as a whole, so what lies in its folder is kept relative to it and follows it; what lies
 * elsewhere is kept as it is. Standard input, `-`, is no path.
 */
const inside = "./";

/** A path as database and receipts have it. A folder may be named in several ways, through links. */
export function keptPath(root: string, path: string): string {
  if (!isAbsolute(path)) return path;
  return below(root, path) ?? below(realPath(root), join(realPath(dirname(path)), basename(path))) ?? path;
}

function below(root: string, path: string): string | null {
  const way = relative(root, path);
  return way === ".." || way.startsWith("../") || isAbsolute(way) ? null : `${inside}${way}`;
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** The same for a path that was kept absolute by an earlier version, in a folder that was elsewhere then. */
export function keptIn(roots: readonly (string | null)[], path: string): string {
  for (const root of roots) {
    const kept = root === null ? path : keptPath(root, path);
    if (kept !== path) return kept;
  }
  return path;
}

/** The path that is meant where the workspace lies now. */
export function toldPath(root: string, path: string): string {
  return path.startsWith(inside) ? resolve(root, path) : path;
}

/** Paths of this folder that an earlier version has kept absolute follow it from now on too. */
export function keepOwnPaths(db: Sqlite, roots: readonly (string | null)[]): void {
  const runs = db
    .prepare(
      "SELECT id, manifest, out_folder FROM runs WHERE substr(out_folder, 1, 1) = '/' OR substr(manifest, 1, 1) = '/'",
    )
    .all() as { id: number; manifest: string; out_folder: string }[];
  const change = db.prepare("UPDATE runs SET manifest = ?, out_folder = ? WHERE id = ?");
  for (const { id, manifest, out_folder } of runs) {
    const kept = [keptIn(roots, manifest), keptIn(roots, out_folder)];
    if (kept[0] !== manifest || kept[1] !== out_folder) change.run(...kept, id);
  }
}
