import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterThisFile } from "../../after-file.js";

let folder: string | null = null;

/** The folder of the parsers that read files, which is removed in the end. */
export function scratch(): string {
  if (folder !== null) return folder;
  const made = mkdtempSync(join(tmpdir(), "bulkgen-fuzz-"));
  folder = made;
  afterThisFile(() => {
    rmSync(made, { recursive: true, force: true });
    folder = null;
  });
  return made;
}

/** A file with these bytes, in place of the one before it. */
export function fileOf(name: string, bytes: Uint8Array): string {
  const path = join(scratch(), name);
  writeFileSync(path, bytes);
  return path;
}
