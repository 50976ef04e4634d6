import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Disk } from "../core/ports/disk.js";
import { linked } from "./disk/links.js";
import { openTemporary } from "./disk/temporary.js";
import { type IndexLine, identityOf } from "./index-file.js";

/** The `NAME.json` beside `NAME.png`: a copy of its index line, for tools that read one file at a time. */
export function sidecarOf(file: string): string {
  return file.replace(/\.[^./]*$/, "") + sidecarExtension;
}

const sidecarExtension = ".json";

/** Writes the sidecar durably, where its file is. The caller syncs the folder. */
export async function writeSidecar(
  disk: Disk,
  jobFolder: string,
  folder: string,
  line: IndexLine,
): Promise<void> {
  const temporary = await openTemporary(disk, folder, `sidecar ${identityOf(line)}`);
  const text = Buffer.from(`${JSON.stringify(line, null, 2)}\n`);
  const sha256 = createHash("sha256").update(text).digest("hex");
  const content = { bytes: text.length, sha256, mime: "application/json" };
  try {
    await temporary.file.write(text);
    await temporary.file.sync();
    const target = join(jobFolder, sidecarOf(line.file));
    // A redo after a crash finds its own sidecar: no other file may have this name.
    await linked(disk, temporary.path, target, line.bucket === undefined ? undefined : content);
  } finally {
    await temporary.discard();
  }
}
