import { isUtf8 } from "node:buffer";
import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, extname } from "node:path";
import { nearest } from "../core/nearest.js";
import type { Problem } from "../core/problem.js";

const utf8 = "UTF-8 text";

export type Text = { text: string } | { problem: Problem };

/** The text of a manifest, without a byte order mark, or the one reason why there is none. */
export async function readText(file: string): Promise<Text> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(file);
  } catch (error) {
    return { problem: await unreadable(file, error as NodeJS.ErrnoException) };
  }
  return decoded(file, bytes);
}

function decoded(file: string, bytes: Uint8Array): Text {
  const fail = (message: string, expected: string, got: string, line?: number) => ({
    problem: {
      place: { file, row: null, ...(line === undefined ? {} : { line, lineColumn: 1 }) },
      message,
      expected,
      got,
    },
  });
  if (bytes.length === 0) return fail("the file is empty", "a header and rows", "0 bytes");
  const kind = foreignKind(bytes);
  const text = new TextDecoder("utf-8").decode(bytes);
  if (kind) return fail("the file is not UTF-8 text", `${utf8} (save the sheet as "CSV UTF-8")`, kind);
  const nul = text.indexOf("\0");
  if (nul >= 0) return fail("the file has NUL bytes", utf8, "a NUL byte", lineOf(text, nul));
  const wrong = isUtf8(bytes) ? -1 : text.indexOf("\uFFFD");
  if (wrong >= 0) {
    const got = "bytes of another encoding, perhaps Windows-1252";
    return fail(
      "the file is not UTF-8 text",
      `${utf8} (save the sheet as "CSV UTF-8")`,
      got,
      lineOf(text, wrong),
    );
  }
  if (text.trim() === "") return fail("the file is empty", "a header and rows", "blank lines only");
  return { text };
}

/** What the file is, when its first bytes tell that it is no text of ours. */
function foreignKind(bytes: Uint8Array): string | null {
  const start = Buffer.from(bytes.subarray(0, 4)).toString("latin1");
  if (start.startsWith("\xff\xfe") || start.startsWith("\xfe\xff")) return "UTF-16 text";
  return start === "PK\x03\x04" ? "a workbook (.xlsx) or another zip file" : null;
}

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

async function unreadable(file: string, error: NodeJS.ErrnoException): Promise<Problem> {
  const place = { file, row: null };
  const expected = "a manifest file (.csv or .json)";
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
  return [".csv", ".tsv", ".json"].includes(extname(name).toLowerCase());
}
