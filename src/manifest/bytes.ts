import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, extname } from "node:path";
import { nearest } from "../core/nearest.js";
import type { Problem } from "../core/problem.js";

/** Extensions of files that may be manifests. */
export const manifestExtensions = [".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", ".xlsx"] as const;

/** The manifest that is read from standard input, and what messages and the job call it. */
export const standardInput = "-";
export const standardInputName = "stdin";

/** Larger files than this are no sheets: a text of more than half a gigabyte cannot even be held. */
const fileBytesMax = 400_000_000;

export type Bytes = { bytes: Uint8Array } | { problem: Problem };

/** The bytes of a manifest, or of standard input when its name is `-`, or the one reason why there are none. */
export async function readBytes(file: string, stdin?: AsyncIterable<Uint8Array>): Promise<Bytes> {
  try {
    const bytes = file === standardInput ? await readAll(stdin) : await readFile(file);
    return bytes.length > fileBytesMax ? { problem: tooLarge(file, bytes.length) } : { bytes };
  } catch (error) {
    const failed = error as NodeJS.ErrnoException;
    if (failed.code === "ERR_FS_FILE_TOO_LARGE") return { problem: tooLarge(file, null) };
    return { problem: await unreadable(file, failed) };
  }
}

async function readAll(stdin: AsyncIterable<Uint8Array> | undefined): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of stdin ?? []) {
    pieces.push(piece);
    length += piece.length;
    if (length > fileBytesMax) break;
  }
  return Buffer.concat(pieces);
}

function tooLarge(file: string, bytes: number | null): Problem {
  return {
    place: { file, row: null },
    message: "the file is too large for a manifest",
    expected: `at most ${fileBytesMax / 1_000_000} MB`,
    got: bytes === null ? "more" : `${Math.round(bytes / 1_000_000)} MB or more`,
  };
}

async function unreadable(file: string, error: NodeJS.ErrnoException): Promise<Problem> {
  const place = { file, row: null };
  const expected = "a manifest file (.csv, .xlsx, .json, .jsonl or .yaml)";
  if (error.code === "EISDIR") {
    const only = (await namesIn(file)).filter(looksLikeManifest);
    const near = only.length === 1 ? { nearest: only[0] as string } : {};
    return { place, message: "the manifest is a folder", expected, got: "a folder", ...near };
  }
  if (error.code === "ENOENT" || error.code === "ENOTDIR") {
    const names = await namesIn(dirname(file));
    const near = nearest(basename(file), names);
    const got = names.length > 0 ? "no such file" : "no such file, and nothing in that folder";
    return {
      place,
      message: "the manifest does not exist",
      expected,
      got,
      ...(near ? { nearest: near } : {}),
    };
  }
  return { place, message: "the manifest cannot be read", expected, got: error.code ?? error.message };
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

function looksLikeManifest(name: string): boolean {
  return (manifestExtensions as readonly string[]).includes(extname(name).toLowerCase());
}
