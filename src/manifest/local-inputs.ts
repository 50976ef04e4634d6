import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { basename, dirname, relative, resolve } from "node:path";
import { mediaFields } from "../api/inputs.js";
import { isReference } from "../core/reference.js";
import { isOutside } from "../text/inside.js";
import { nearest } from "../text/nearest.js";
import { sha256Of } from "../text/pieces.js";
import { manifestFolder } from "./folder.js";
import type { Row } from "./shape/manifest.js";

interface LocalFile {
  /** Absolute. */
  path: string;
  /** `sha256:` and the hash. */
  sha256: string;
  bytes: number;
  /** By its content; null if that is not known. */
  mime: string | null;
}

/** A local input file: the hash of its content, or why it cannot be used. */
export type LocalInput = LocalFile | { wrong: string; expected: string; nearest?: string; isGone?: boolean };

const scheme = /^[a-z][a-z0-9+.-]*:/i;

/** Whether the value of a media field is a path, and neither a URL nor a reference. */
export function isLocalPath(value: string): boolean {
  return !scheme.test(value) && !isReference(value);
}

/** The local input files of rows. Each is read once, and only from the manifest's folder. */
export class LocalInputs {
  /** By their paths as written in the rows. */
  readonly found = new Map<string, LocalInput>();
  private readonly folder: string;

  constructor(manifest: string) {
    this.folder = manifestFolder(resolve(manifest));
  }

  /** Reads the files that only these rows name so far. */
  async read(rows: Iterable<Pick<Row, "inputs">>): Promise<void> {
    for (const { inputs } of rows) {
      for (const field of mediaFields) {
        const value = inputs[field];
        if (value === undefined || !isLocalPath(value) || this.found.has(value)) continue;
        this.found.set(value, await localInput(this.folder, value));
      }
    }
  }
}

/** The file of a media field, if it may be used; `folder` is the manifest's. */
export async function localInput(folder: string, value: string): Promise<LocalInput> {
  const outside = {
    wrong: "it lies outside the manifest's folder",
    expected: "a file in the manifest's folder",
  };
  const path = resolve(folder, value);
  try {
    if (isOutside(folder, value)) return outside;
    const facts = await stat(path);
    if (!facts.isFile()) return { wrong: "it is not a file", expected: "a media file" };
    if (facts.size === 0) return { wrong: "it is empty", expected: "a media file" };
    return {
      path,
      sha256: `sha256:${await sha256Of(createReadStream(path))}`,
      bytes: facts.size,
      mime: await typeOf(path),
    };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const missing = code === "ENOENT" || code === "ENOTDIR";
    // On Windows, folders are separated by backslashes.
    const near = missing ? await nearestFile(resolve(folder, value.replaceAll("\\", "/"))) : undefined;
    return {
      wrong: missing ? "there is no such file" : `it cannot be read (${code ?? message})`,
      expected: "a file in the manifest's folder",
      isGone: missing,
      ...(near === undefined ? {} : { nearest: relative(folder, near) }),
    };
  }
}

async function typeOf(path: string): Promise<string | null> {
  const { fileTypeFromFile } = await import("file-type");
  return (await fileTypeFromFile(path))?.mime ?? null;
}

async function nearestFile(path: string): Promise<string | undefined> {
  const names = await readdir(dirname(path)).catch(() => []);
  const near = nearest(basename(path), names);
  return near === undefined ? undefined : resolve(dirname(path), near);
}
