import { join } from "node:path";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { type Examination, examine, type FileFinding, type KnownFile } from "../../archive/examine.js";
import { identityOf } from "../../archive/index-file.js";
import type { Clock, Random } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { ArchivedOutput, Item, Store } from "../../core/ports/store.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { mustHaveRuns } from "../workspace/history.js";
import { lockWorkspace } from "../workspace/open.js";
import type { Workspace } from "../workspace/workspace.js";

/** How much of the archive is read: sizes alone, every byte, or a share of the files. */
export type Depth = "sizes" | "all" | { percent: number };

/** A job's folder with what the workspace knows of it. */
export interface Folder {
  path: string;
  outputs: ArchivedOutput[];
  /** Items of the job that were charged for and are still to be fetched, or could not be. */
  owed: Item[];
}

export interface FolderReport extends Folder {
  examination: Examination;
}

export interface VerifyOptions {
  workspace: Workspace;
  depth: Depth;
  clock: Clock;
  random: Random;
  signal: AbortSignal;
  /** Told how many files are done, and of how many. */
  onProgress(done: number, all: number): void;
}

/** Examines the archive of every job of the workspace. Throws EarlyExit when there is none, or it was interrupted. */
export async function verifyWorkspace(options: VerifyOptions): Promise<FolderReport[]> {
  const { workspace, clock, depth, random, signal, onProgress } = options;
  const folders = await inWorkspace(workspace, clock, foldersOf);
  const all = folders.reduce((sum, { outputs }) => sum + outputs.length, 0);
  let done = 0;
  const reports: FolderReport[] = [];
  for (const folder of folders) {
    const reads = readsOf(depth, folder, random);
    const onFile = () => onProgress(++done, all);
    const known = folder.outputs.map(knownFile);
    const examination = await examine(nodeDisk, folder.path, known, { reads, onFile, signal });
    if (signal.aborted) throw new EarlyExit("interrupted", "interrupted; nothing was changed");
    reports.push({ ...folder, examination });
  }
  return reports;
}

/** Opens the workspace's database for as long as `use` takes. Throws EarlyExit when there is none. */
async function inWorkspace<Result>(
  workspace: Workspace,
  clock: Clock,
  use: (store: Store) => Promise<Result>,
): Promise<Result> {
  mustHaveRuns(workspace);
  const store = openWorkspace(workspace, clock);
  try {
    return await use(store);
  } finally {
    store.close();
  }
}

/** Every folder that a run of the workspace wrote to, also one in which nothing was saved. */
async function foldersOf(store: Store): Promise<Folder[]> {
  const folders = new Map<string, Folder>();
  for (const run of await store.runs()) {
    const path = jobFolder(run);
    if (folders.has(path)) continue;
    const items = await store.itemsOf(run.jobName);
    const owed = items.filter(({ state }) => state === "ready" || state === "held");
    folders.set(path, { path, outputs: [], owed });
  }
  for (const output of await store.archived()) folders.get(jobFolder(output))?.outputs.push(output);
  return [...folders.values()];
}

export function knownFile(
  output: ArchivedOutput,
): KnownFile & { item: string; task: string; output: number } {
  const { item, taskId: task, number, file, bytes, sha256 } = output;
  const identity = identityOf({ key: item.key, task, output: number });
  return { identity, file, bytes, sha256, item: item.rowId, task, output: number };
}

/** A share is drawn by lot, so that one run after the other comes to read everything. */
function readsOf(depth: Depth, { outputs }: Folder, random: Random): (file: KnownFile) => boolean {
  if (depth === "sizes") return () => false;
  if (depth === "all") return () => true;
  const lots = outputs.map((output) => ({ identity: knownFile(output).identity, lot: random.next() }));
  const count = Math.ceil((outputs.length * depth.percent) / 100);
  const drawn = new Set(
    lots
      .toSorted((a, b) => a.lot - b.lot)
      .slice(0, count)
      .map(({ identity }) => identity),
  );
  return ({ identity }) => drawn.has(identity);
}

/** Removes what was found as leftovers. Throws EarlyExit when a run is at work: they may be its own. */
export async function removeStrays(
  options: Pick<VerifyOptions, "workspace" | "clock" | "signal">,
  reports: readonly FolderReport[],
): Promise<number> {
  const lock = await lockWorkspace({ ...options, ifLocked: "fail", onLocked: () => {} });
  try {
    let removed = 0;
    for (const { path, examination } of reports) {
      for (const { file } of examination.findings.filter(isLeftover)) {
        await nodeDisk.unlink(join(path, file));
        removed++;
      }
    }
    return removed;
  } finally {
    lock.release();
  }
}

export function isLeftover(finding: FileFinding): boolean {
  return finding.kind === "leftover";
}
