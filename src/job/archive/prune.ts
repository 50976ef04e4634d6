import { existsSync, lstatSync, readdirSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { dirname, join, posix, resolve } from "node:path";
import { thumbnailName } from "../../archive/check/thumbnail.js";
import { folderBelow, holds, jobFolder, removeName } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { indexName, JobIndex, lineOf, noteOfPruned, sidecarOf } from "../../archive/index-file.js";
import { isSuperseded } from "../../archive/move.js";
import { quarantineName } from "../../archive/quarantine.js";
import type { Clock } from "../../clock.js";
import { type ItemState, openStates } from "../../core/item.js";
import type { ArchivedOutput, Run, Store } from "../../core/ports/store.js";
import { isLocalPath } from "../../manifest/local-inputs.js";
import { leavesReally } from "../../text/inside.js";
import { notAgreed, unagreed } from "../../trust/trust.js";
import { isUnfinished } from "../workspace/find-run.js";
import { mustHaveRuns } from "../workspace/history.js";
import { lockWorkspace } from "../workspace/open.js";
import type { Workspace } from "../workspace/workspace.js";

/**
 * Removes old files. What they prove stays: the item is archived as before, its index line says that the file was pruned,
 * and receipts and spend log are not touched. So neither a run nor a rebuilt workspace makes or pays for it again.
 */
export interface PruneOptions {
  workspace: Workspace;
  /** Files that were saved before this (UTC ms). */
  before: number;
  keepPicked: boolean;
  clock: Clock;
  signal: AbortSignal;
  /** Whether to remove it. */
  consent(pruning: Pruning): Promise<boolean>;
  onProgress(done: number, all: number): void;
}

export interface PrunedFiles {
  files: number;
  bytes: number;
}

export interface PrunedGroup extends PrunedFiles {
  job: string;
  edition: string;
  superseded: number;
  picked: number;
}

/** What goes, and what is old enough and stays. */
export interface Pruning extends PrunedFiles {
  groups: readonly PrunedGroup[];
  quarantine: PrunedFiles;
  kept: Record<"picked" | "unfinished" | "undecided" | "changed" | "bucket", number>;
}

/** Returns what was removed, or would be. Throws EarlyExit while another process has the workspace. */
export async function pruneWorkspace(options: PruneOptions): Promise<{ pruning: Pruning; removed: boolean }> {
  const { workspace } = options;
  mustHaveRuns(workspace);
  const lock = await lockWorkspace({ ...options, ifLocked: "fail", onLocked: () => {} });
  try {
    const store = await lock.openStore();
    try {
      const { pruning, items, quarantined } = await findOld(store, options);
      const isAnything = pruning.files + pruning.quarantine.files > 0;
      if (!isAnything || !(await options.consent(pruning))) return { pruning, removed: false };
      await removeFiles(store, items, pruning.files, options);
      for (const path of quarantined) await removeName(nodeDisk, path);
      return { pruning, removed: true };
    } finally {
      await store.close();
    }
  } finally {
    await lock.release();
  }
}

interface Found {
  pruning: Pruning;
  /** Ids of the items whose files go. */
  items: ReadonlySet<number>;
  /** Absolute paths. */
  quarantined: readonly string[];
}

async function findOld(
  store: Store,
  { before, keepPicked, workspace }: Pick<PruneOptions, "before" | "keepPicked" | "workspace">,
): Promise<Found> {
  const picks = await store.picks();
  const runs = await store.runs();
  const openJobs = await unfinishedJobs(store, runs);
  const needed = await filesNeeded(store, runs);
  const groups = new Map<string, PrunedGroup>();
  const kept = { picked: 0, unfinished: 0, undecided: 0, changed: 0, bucket: 0 };
  const found: ArchivedOutput[] = [];
  // An item keeps all its files, or none.
  const newer = new Set<number>();
  for await (const page of store.archived())
    for (const output of page) {
      const { item } = output;
      if (output.savedAt >= before) newer.add(item.id);
      else if (item.state !== "archived" || openJobs.has(item.jobId) || needed(output)) kept.unfinished++;
      else if (output.bucket != null) kept.bucket++;
      else if (item.approval === "waiting") kept.undecided++;
      else if (keepPicked && picks.has(item.id)) kept.picked++;
      else found.push(slim(output));
    }
  refuseForeign(found, workspace);
  const changed = new Set<number>();
  for (const output of found) if (await isChanged(output)) changed.add(output.item.id);
  const items = new Set<number>();
  for (const { item, file, bytes, jobName } of found) {
    if (newer.has(item.id)) continue;
    if (changed.has(item.id)) {
      kept.changed++;
      continue;
    }
    items.add(item.id);
    const name = JSON.stringify([jobName, item.edition]);
    const group = groups.get(name) ?? {
      ...none,
      job: jobName,
      edition: item.edition,
      superseded: 0,
      picked: 0,
    };
    groups.set(name, group);
    group.files++;
    group.bytes += bytes;
    if (isSuperseded(file)) group.superseded++;
    if (picks.has(item.id)) group.picked++;
  }
  const old = quarantinedIn(
    runs.filter(({ jobId }) => !openJobs.has(jobId)),
    before,
  );
  const all = [...groups.values()];
  const pruning = { ...sumOf(all), groups: all, quarantine: sumOf(old), kept };
  return { pruning, items, quarantined: old.map(({ path }) => path) };
}

const none: PrunedFiles = { files: 0, bytes: 0 };

function sumOf(all: readonly PrunedFiles[]): PrunedFiles {
  return all.reduce(
    (sum, { files, bytes }) => ({ files: sum.files + files, bytes: sum.bytes + bytes }),
    none,
  );
}

/** There may be more outputs than fit into memory with all their texts. */
function slim(output: ArchivedOutput): ArchivedOutput {
  return { ...output, item: { ...output.item, cells: [], prompt: null, params: {}, inputs: {} } };
}

/** Jobs with something left to do: their files may be inputs, or evidence for a decision. */
async function unfinishedJobs(store: Store, runs: readonly Run[]): Promise<ReadonlySet<number>> {
  const open = new Set<number>();
  for (const run of runs) {
    const counts = await store.counts(run.id);
    if (isUnfinished(run) || unsettled.some((state) => counts[state] > 0)) open.add(run.jobId);
  }
  return open;
}

const unsettled: readonly ItemState[] = [...openStates, "unknown", "overdue", "held", "blocked"];

/** Something else lies under the name of the file; nothing at all may, after a prune that was cut short. */
async function isChanged(output: ArchivedOutput): Promise<boolean> {
  const folder = jobFolder(output);
  // Where a folder was replaced by a link, the files are somebody else's by now.
  for (let below = posix.dirname(output.file); below !== "."; below = posix.dirname(below))
    if (lstatSync(join(folder, below), { throwIfNoEntry: false })?.isSymbolicLink()) return true;
  const path = join(folder, output.file);
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts !== undefined && !(facts.isFile() && (await holds(nodeDisk, path, output)));
}

/** A received state may name any folder as that of its outputs. Throws EarlyExit unless its user has agreed to it. */
function refuseForeign(
  found: readonly ArchivedOutput[],
  { root, sharedFolder, stateFile, database }: Workspace,
): void {
  if (database !== null) return;
  const outside = [...new Set(found.map(({ outFolder }) => outFolder))].filter((folder) =>
    leavesReally(root, folder),
  );
  const values = outside.map((value) => ({ setting: "out", value, from: stateFile }));
  const asked = notAgreed(sharedFolder, root, values);
  if (asked.length > 0) throw unagreed(root, asked, "bulkgen trust");
}

/** Whether a file is still needed: a failed item takes it, or one of an unfinished run has it as its local input. */
async function filesNeeded(
  store: Store,
  runs: readonly Run[],
): Promise<(output: Pick<ArchivedOutput, "item" | "outFolder" | "jobName" | "file">) => boolean> {
  const parents = new Set<string>();
  for (const [jobName, jobId] of new Map(runs.map((run) => [run.jobName, run.jobId])))
    for await (const page of store.history(jobName))
      for (const item of page)
        if (item.state === "failed") for (const { key } of item.parents ?? []) parents.add(`${jobId} ${key}`);
  const inputs = new Set<string>();
  for (const run of runs.filter(isUnfinished))
    for (const item of await store.items(run.id, ["planned", "blocked", "failed"]))
      for (const value of Object.values(item.inputs))
        if (isLocalPath(value)) inputs.add(resolve(dirname(run.manifest), value));
  return ({ item, file, ...output }) =>
    parents.has(`${item.jobId} ${item.key}`) || inputs.has(join(jobFolder(output), file));
}

function quarantinedIn(runs: readonly Run[], before: number): (PrunedFiles & { path: string })[] {
  const folders = [...new Set(runs.map((run) => join(jobFolder(run), quarantineName)))];
  return folders
    .filter((folder) => lstatSync(folder, { throwIfNoEntry: false })?.isDirectory())
    .flatMap((folder) =>
      readdirSync(folder, { withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name !== indexName)
        .map(({ name }) => ({ path: join(folder, name), facts: lstatSync(join(folder, name)) }))
        .filter(({ facts }) => facts.mtimeMs < before)
        .map(({ path, facts }) => ({ path, files: 1, bytes: facts.size })),
    );
}

/**
 * The order matters: the index says first that a file was pruned, and the database last. A prune that is cut short is finished
 * by the next one.
 */
async function removeFiles(
  store: Store,
  items: ReadonlySet<number>,
  all: number,
  { clock, signal, onProgress }: PruneOptions,
): Promise<void> {
  const check = `pruned ${new Date(clock.now()).toISOString().slice(0, 10)}`;
  const indexes = new Map<string, JobIndex>();
  let done = 0;
  for await (const page of store.archived()) {
    // What was begun is finished.
    if (signal.aborted) return;
    const outputs = page.filter(({ item }) => items.has(item.id));
    for (const output of outputs) {
      const folder = jobFolder(output);
      if (!indexes.has(folder)) indexes.set(folder, await JobIndex.open(nodeDisk, folder));
    }
    await Promise.all(
      outputs.map((output) => indexes.get(jobFolder(output))?.add({ ...lineOf(output), check })),
    );
    for (const output of outputs) {
      await removeFile(output);
      onProgress(++done, all);
    }
    await store.pruned([...new Set(outputs.map(({ item }) => item.id))], {
      check,
      note: noteOfPruned(check),
    });
  }
}

async function removeFile(output: ArchivedOutput): Promise<void> {
  const folder = jobFolder(output);
  const { file, sha256 } = output;
  if (!existsSync(join(folder, file)) || (await isChanged(output))) return;
  const below = posix.dirname(file);
  const place = await folderBelow(nodeDisk, folder, below);
  await removeName(nodeDisk, join(place, posix.basename(file)));
  await removeName(nodeDisk, join(place, posix.basename(sidecarOf(file))));
  await removeName(nodeDisk, join(folder, thumbnailName(sha256)));
  for (let empty = below; empty !== "."; empty = dirname(empty))
    if (!(await isRemoved(join(folder, empty)))) break;
}

/** False for a folder that is not empty. */
async function isRemoved(folder: string): Promise<boolean> {
  return rmdir(folder).then(
    () => true,
    () => false,
  );
}
