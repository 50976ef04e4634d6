import { existsSync } from "node:fs";
import { join } from "node:path";
import { jobFolder } from "../../archive/disk/names.js";
import type { Store } from "../../core/ports/store.js";

/** Files of a job's archived items that are in none of the folders that its runs wrote to: their numbers, by key. */
export async function missingFiles(store: Store, jobName: string): Promise<Map<string, number[]>> {
  const runs = (await store.runs()).filter((run) => run.jobName === jobName);
  const folders = [...new Set(runs.map(jobFolder))].reverse();
  const missing = new Map<string, number[]>();
  for (const { key, number, file } of await store.files(jobName)) {
    if (folders.some((folder) => existsSync(join(folder, file)))) continue;
    missing.set(key, [...(missing.get(key) ?? []), number]);
  }
  return missing;
}
