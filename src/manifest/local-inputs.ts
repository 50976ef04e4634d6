import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, relative, resolve } from "node:path";
import { mediaFields } from "../api/inputs.js";
import { nearest } from "../core/nearest.js";
import type { Manifest } from "./manifest.js";
import { leaves } from "./within.js";

/** A local file that a row names as its input: its content's hash, or why it cannot be used. */
export type LocalInput =
  | { path: string; sha256: string }
  | { wrong: string; expected: string; nearest?: string };

const scheme = /^[a-z][a-z0-9+.-]*:/i;

/** Whether a media field's value is a path and not an address. */
export function isLocalPath(value: string): boolean {
  return !scheme.test(value);
}

/**
 * Reads every local file that the rows name, once, from the manifest's folder and nowhere above it. The keys are the
 * values as the rows write them.
 */
export async function readLocalInputs(manifest: Manifest): Promise<Map<string, LocalInput>> {
  const folder = dirname(resolve(manifest.file));
  const found = new Map<string, LocalInput>();
  for (const row of manifest.rows) {
    for (const field of mediaFields) {
      const value = row.inputs[field];
      if (value === undefined || !isLocalPath(value) || found.has(value)) continue;
      found.set(value, await localInput(folder, value));
    }
  }
  return found;
}

async function localInput(folder: string, value: string): Promise<LocalInput> {
  const outside = {
    wrong: "it lies outside the manifest's folder",
    expected: "a file in the manifest's folder",
  };
  const path = resolve(folder, value);
  if (isAbsolute(value) || leaves(folder, path)) return outside;
  try {
    // A link may point out of the folder, so the path that counts is the one behind it.
    if (leaves(await realpath(folder), await realpath(path))) return outside;
    if (!(await stat(path)).isFile()) return { wrong: "it is not a file", expected: "a media file" };
    return { path, sha256: await hashOf(path) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const missing = code === "ENOENT" || code === "ENOTDIR";
    const near = missing ? await nearestFile(path) : undefined;
    return {
      wrong: missing ? "there is no such file" : `it cannot be read (${code ?? message})`,
      expected: "a file in the manifest's folder",
      ...(near === undefined ? {} : { nearest: relative(folder, near) }),
    };
  }
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path)) hash.update(piece as Uint8Array);
  return `sha256:${hash.digest("hex")}`;
}

async function nearestFile(path: string): Promise<string | undefined> {
  const names = await readdir(dirname(path)).catch(() => []);
  const near = nearest(basename(path), names);
  return near === undefined ? undefined : resolve(dirname(path), near);
}
