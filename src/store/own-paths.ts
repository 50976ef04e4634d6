import { isAbsolute, relative, resolve } from "node:path";
import type { Sqlite } from "../sqlite.js";

/**
 * A workspace is moved and copied as a whole, so what lies in its folder is kept relative to it and follows it; what lies
 * elsewhere is kept as it is. Standard input, `-`, is no path.
 */
const inside = "./";

/** A path as the database has it. */
export function keptPath(root: string, path: string): string {
  if (!isAbsolute(path)) return path;
  const way = relative(root, path);
  return way === ".." || way.startsWith("../") || isAbsolute(way) ? path : `${inside}${way}`;
}

/** The path that is meant where the workspace lies now. */
export function toldPath(root: string, path: string): string {
  return path.startsWith(inside) ? resolve(root, path) : path;
}

/** Paths of this folder that an earlier version has kept absolute follow it from now on too. */
export function keepOwnPaths(db: Sqlite, root: string): void {
  const runs = db
    .prepare(
      "SELECT id, manifest, out_folder FROM runs WHERE substr(out_folder, 1, 1) = '/' OR substr(manifest, 1, 1) = '/'",
    )
    .all() as { id: number; manifest: string; out_folder: string }[];
  const change = db.prepare("UPDATE runs SET manifest = ?, out_folder = ? WHERE id = ?");
  for (const { id, manifest, out_folder } of runs) {
    const kept = [keptPath(root, manifest), keptPath(root, out_folder)];
    if (kept[0] !== manifest || kept[1] !== out_folder) change.run(...kept, id);
  }
}
