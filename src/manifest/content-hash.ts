import { createReadStream } from "node:fs";
import { extname } from "node:path";
import { sha256Of } from "../text/pieces.js";
import { isOfFiles } from "./folder.js";
import { standardInput } from "./formats/bytes.js";
import { formatsByExtension } from "./formats/extensions.js";
import { openSource } from "./read.js";

/**
 * SHA-256 of a manifest's file, and of the file that it names for its rows: whether it says the same as before. Null where there is
 * no file to compare: standard input, a folder, a file that cannot be read.
 */
export async function contentHash(manifest: string): Promise<string | null> {
  if (manifest === standardInput || isOfFiles(manifest)) return null;
  const format = formatsByExtension[extname(manifest).toLowerCase()];
  const isJob = format === "YAML" || format === "JSON";
  const { rowsFile } = isJob ? await openSource(manifest, {}) : {};
  try {
    return await sha256Of(bytesOf([manifest, ...(rowsFile === undefined ? [] : [rowsFile])]));
  } catch {
    return null;
  }
}

async function* bytesOf(files: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const file of files) yield* createReadStream(file);
}
