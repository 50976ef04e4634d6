import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder of its own for one test, with these files in it; removed when the test ends. Returns its path. */
export async function folderWith(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "bulkgen-manifest-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
  return folder;
}

/** One file in a folder of its own. Returns the file's path. */
export async function fileWith(name: string, content: string | Uint8Array): Promise<string> {
  return join(await folderWith({ [name]: content }), name);
}
