import { statSync } from "node:fs";
import { basename, dirname, extname, relative, sep } from "node:path";
import { manifestExtensions } from "./formats/extensions.js";

/**
 * A manifest is mostly a file. It may also be a folder, or a pattern such as `photos/**\/*.jpg`: then each file in it is a
 * row, and its folder is the last one that the pattern names without a wildcard.
 */

/** Whether the files at this path are the rows: it is a folder or a pattern. A file may have a name like a pattern. */
export function isOfFiles(manifest: string): boolean {
  const kind = kindOf(manifest);
  return kind === "folder" || (kind === null && isPattern(manifest));
}

/** The folder from which a manifest names files; `manifest` is its path. */
export function manifestFolder(manifest: string): string {
  return kindOf(manifest) === "folder" ? manifest : fixedFolder(manifest);
}

/** What a manifest is called if it has no name of its own: so its job is called too. */
export function manifestStem(manifest: string): string {
  return isOfFiles(manifest)
    ? basename(manifestFolder(manifest)) || "files"
    : basename(manifest, extname(manifest));
}

/** The pattern of a manifest that is of files, seen from its folder. */
export function patternOf(manifest: string): string {
  return relative(manifestFolder(manifest), manifest).replaceAll(sep, "/") || ".";
}

export function isThere(path: string): boolean {
  return kindOf(path) !== null;
}

/** The last folder of a path before any wildcard. A folder may have a name like a pattern. */
export function fixedFolder(path: string): string {
  let folder = dirname(path);
  while (hasWildcard(folder) && kindOf(folder) !== "folder") folder = dirname(folder);
  return folder;
}

const wildcard = /[*?]|\[[^\]]+\]|\{[^}]*(?:,|\.\.)[^}]*\}|[!+@]\([^)]*\)/;

function hasWildcard(path: string): boolean {
  return wildcard.test(path);
}

/** The mistyped name of a sheet may have brackets, but no wildcard stands for several sheets. */
function isPattern(path: string): boolean {
  return hasWildcard(path) && !manifestExtensions.includes(extname(path).toLowerCase());
}

function kindOf(path: string): "folder" | "other" | null {
  try {
    const facts = statSync(path, { throwIfNoEntry: false });
    return facts === undefined ? null : facts.isDirectory() ? "folder" : "other";
  } catch {
    return null;
  }
}
