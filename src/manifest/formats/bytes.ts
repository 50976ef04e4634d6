import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { basename, dirname, extname } from "node:path";
import type { Problem } from "../../core/problem.js";
import { nearest } from "../../text/nearest.js";
import { manifestExtensions } from "./extensions.js";
import { ownerFile } from "./foreign-file.js";

/** The manifest on standard input, and its name in messages and as a job. */
export const standardInput = "-";
export const standardInputName = "stdin";

/** The largest manifest: a string cannot hold more than half a gigabyte. */
const fileBytesMax = 400_000_000;
/** Small pieces leave less for the garbage collector. */
const pieceBytes = 65_536;

/** The content of a manifest in pieces, readable more than once. */
export interface Bytes {
  pieces(): AsyncIterable<Uint8Array>;
}

export interface ByteOptions {
  /** What a manifest on standard input is read from. */
  stdin?: AsyncIterable<Uint8Array>;
  /** What messages call the file. Default: manifest. */
  called?: "manifest" | "rows' file" | "review file";
}

/** The bytes of a manifest, or of standard input for `-`, or the problem that prevents reading them. */
export async function openBytes(
  file: string,
  { stdin, called = "manifest" }: ByteOptions = {},
): Promise<Bytes | { problem: Problem }> {
  const owner = ownerFile(file);
  if (owner !== null) return { problem: { place: { file, row: null }, ...owner } };
  try {
    if (file === standardInput) return held(standardInputName, await gathered(stdin ?? noInput()));
    const handle = await open(file);
    try {
      const facts = await handle.stat();
      if (facts.size > fileBytesMax) return { problem: tooLarge(file, facts.size) };
      // A pipe can be read only once.
      if (!facts.isFile()) return held(file, await gathered(piecesOf(handle)));
    } finally {
      await handle.close();
    }
    return { pieces: () => piecesOfFile(file) };
  } catch (error) {
    return { problem: await unreadable(file, called, error as NodeJS.ErrnoException) };
  }
}

/** Why no file that is a manifest can be at this path: nothing is there, a folder, or Excel's own file. Opens nothing. */
export async function whyNoFile(file: string): Promise<Problem | null> {
  if (file === standardInput) return null;
  const owner = ownerFile(file);
  if (owner !== null) return { place: { file, row: null }, ...owner };
  try {
    if (!(await stat(file)).isDirectory()) return null;
    return await unreadable(file, "manifest", { name: "Error", message: "", code: "EISDIR" });
  } catch (error) {
    return await unreadable(file, "manifest", error as NodeJS.ErrnoException);
  }
}

/** Bytes in memory. */
export function bytesOf(bytes: Uint8Array): Bytes {
  return {
    async *pieces() {
      for (let from = 0; from < bytes.length; from += pieceBytes)
        yield bytes.subarray(from, from + pieceBytes);
    },
  };
}

function held(file: string, bytes: Uint8Array): Bytes | { problem: Problem } {
  return bytes.length > fileBytesMax ? { problem: tooLarge(file, bytes.length) } : bytesOf(bytes);
}

async function* noInput(): AsyncGenerator<Uint8Array> {}

/** Opens the file for each piece, so that a reader that stops early leaves nothing open. */
async function* piecesOfFile(file: string): AsyncGenerator<Uint8Array> {
  for (let position = 0; ; ) {
    const handle = await open(file);
    const piece = await pieceOf(handle, position).finally(() => handle.close());
    if (piece.length === 0) return;
    yield piece;
    position += piece.length;
  }
}

async function* piecesOf(handle: FileHandle): AsyncGenerator<Uint8Array> {
  for (;;) {
    const piece = await pieceOf(handle, null);
    if (piece.length === 0) return;
    yield piece;
  }
}

/** A piece is a new buffer, which the reader may keep. `null` reads on from the last piece. */
async function pieceOf(handle: FileHandle, position: number | null): Promise<Uint8Array> {
  const { bytesRead, buffer } = await handle.read(
    Buffer.allocUnsafeSlow(pieceBytes),
    0,
    pieceBytes,
    position,
  );
  return buffer.subarray(0, bytesRead);
}

async function gathered(from: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of from) {
    pieces.push(piece);
    length += piece.length;
    if (length > fileBytesMax) break;
  }
  return Buffer.concat(pieces);
}

function tooLarge(file: string, bytes: number): Problem {
  return {
    place: { file, row: null },
    message: "the file is too large for a manifest",
    expected: `at most ${fileBytesMax / 1_000_000} MB`,
    got: `${Math.round(bytes / 1_000_000)} MB or more`,
  };
}

/** Where a folder may stand. */
const folderInstead = {
  manifest: ", or a folder with pictures, videos or sounds",
  "rows' file": "; files takes a folder, and makes a row of each picture, video or sound in it",
  "review file": "",
};

async function unreadable(
  file: string,
  called: Required<ByteOptions>["called"],
  error: NodeJS.ErrnoException,
): Promise<Problem> {
  const place = { file, row: null };
  const kind = called === "rows' file" ? "file with rows" : `${called.split(" ")[0]} file`;
  const expected = `a ${kind} (.csv, .xlsx, .json, .jsonl or .yaml)`;
  if (error.code === "EISDIR") {
    const only = (await namesIn(file)).filter(looksLikeManifest);
    const near = only.length === 1 ? { nearest: only[0] as string } : {};
    const instead = folderInstead[called];
    return {
      place,
      message: `the ${called} is a folder`,
      expected: expected + instead,
      got: "a folder",
      ...near,
    };
  }
  if (error.code === "ENOENT" || error.code === "ENOTDIR") {
    const names = await namesIn(dirname(file));
    const near = nearest(basename(file), names);
    const got = names.length > 0 ? "no such file" : "no such file, and nothing in that folder";
    return {
      place,
      message: `the ${called} does not exist`,
      expected,
      got,
      ...(near ? { nearest: near } : {}),
    };
  }
  return { place, message: `the ${called} cannot be read`, expected, got: error.code ?? error.message };
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

function looksLikeManifest(name: string): boolean {
  const isOne = manifestExtensions.includes(extname(name).toLowerCase());
  return isOne && ownerFile(name) === null;
}
