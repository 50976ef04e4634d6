import { relative } from "node:path";
import { jobFolder } from "../../archive/disk/job-folder.js";
import { EarlyExit } from "../../core/exit.js";
import type { Item, Run, Store } from "../../core/ports/store.js";

/** The newest item that goes by a row id, a key, a task id or the path of a file. */
export async function itemNamed(store: Store, name: string): Promise<Item> {
  const [newest] = await itemsNamed(store, name);
  if (newest) return newest;
  throw new EarlyExit(
    "usage",
    `no item ${JSON.stringify(name)}: expected a row id, a file's path or a task id, or RUN:ROW-ID for the one of a run`,
  );
}

/** Every item that goes by this name, the newest run's first: editions and jobs may have the same row ids. */
export async function itemsNamed(store: Store, name: string): Promise<Item[]> {
  const found = await store.find(name);
  if (found.length > 0) return found;
  const ofRun = await namedInRun(store, name);
  return ofRun.length > 0 ? ofRun : namedByPath(store, await store.runs(), name);
}

/** `3:cup` is the cup of run 3. */
async function namedInRun(store: Store, name: string): Promise<Item[]> {
  const [, run, rest] = /^(\d+):(.+)$/s.exec(name) ?? [];
  if (run === undefined || rest === undefined) return [];
  return (await store.find(rest)).filter(({ runId }) => runId === Number(run));
}

/** Files of several jobs may be called the same: the folder says which is meant. */
async function namedByPath(store: Store, runs: readonly Run[], path: string): Promise<Item[]> {
  const jobs = new Map(runs.map((run) => [jobFolder(run), run.jobId]));
  for (const [folder, job] of jobs) {
    const found = await store.find(relative(folder, path));
    const ofJob = found.filter(({ jobId }) => jobId === job);
    if (ofJob.length > 0) return ofJob;
  }
  return [];
}
