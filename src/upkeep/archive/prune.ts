import { createReadStream, existsSync, lstatSync, readdirSync } from "node:fs";
import { lstat, realpath, rmdir } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { thumbnailName } from "../../archive/check/thumbnail.js";
import { foldName, jobFolder, removeName } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import {
  Indexes,
  indexName,
  isPruned,
  JobIndex,
  lineOf,
  noteOfPruned,
  prunedCheck,
  sidecarOf,
} from "../../archive/index-file.js";
import { isSuperseded } from "../../archive/move.js";
import { quarantineName } from "../../archive/quarantine.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { type ItemState, uncollectedStates } from "../../core/item.js";
import type { ArchivedOutput, Item, Run } from "../../core/ports/store.js";
import { outValues } from "../../job/run/run-values.js";
import type { Store } from "../../store/workspace/workspace.js";
import { sha256Of } from "../../text/pieces.js";
import { isBelow } from "../../text/within.js";
import type { FolderValue } from "../../trust/trust.js";
import { isUnfinished } from "../../workspace/find-run.js";
import { mustHaveRuns } from "../../workspace/history.js";
import { lockWorkspace } from "../../workspace/open.js";
import type { Workspace } from "../../workspace/workspace.js";

/**
 * Removes old files. What they prove stays: the item is archived as before, its index line says that the file was pruned,
 * and receipts and spend log are not touched. So neither a run nor a rebuilt workspace makes or pays for it again.
 *
 * Index and database say so before a file goes. A file that a prune left, because it was cut short, is removed by the next one.
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
  onProgress(what: "checked" | "removed", done: number, all: number): void;
}

export interface PrunedFiles {
  files: number;
  bytes: number;
}

export interface PrunedGroup extends PrunedFiles {
  job: string;
  edition: string;
  /** Absolute path of the folder that has the files. */
  folder: string;
  superseded: number;
  picked: number;
}

const keptReasons = [
  "picked",
  "unfinished",
  "needed",
  "undecided",
  "changed",
  "elsewhere",
  "bucket",
] as const;
type KeptReason = (typeof keptReasons)[number];

/** What goes, and what is old enough and stays. */
export interface Pruning extends PrunedFiles {
  groups: readonly PrunedGroup[];
  quarantine: PrunedFiles;
  kept: Record<KeptReason, number>;
  /** The folders outside of the workspace from which something goes. */
  outside: readonly FolderValue[];
}

/** Returns what was removed, or would be. Throws EarlyExit while another process has the workspace. */
export async function pruneWorkspace(options: PruneOptions): Promise<{ pruning: Pruning; removed: boolean }> {
  const { workspace } = options;
  mustHaveRuns(workspace);
  const lock = await lockWorkspace({ ...options, ifLocked: "fail", onLocked: () => {} });
  try {
    const store = await lock.openStore();
    try {
      const { pruning, items, left, quarantined } = await findOld(store, options);
      const isAnything = pruning.files + pruning.quarantine.files > 0;
      if (!isAnything || !(await options.consent(pruning))) return { pruning, removed: false };
      const changed = await removeFiles(store, items, pruning.files, options);
      for (const file of left) if ((await stateOf(file)) === "own") await removeFile(file);
      for (const path of quarantined) await removeName(nodeDisk, path);
      return { pruning: without(pruning, changed), removed: true };
    } finally {
      await store.close();
    }
  } finally {
    await lock.release();
  }
}

/** What somebody has changed since it was shown stays. */
function without(pruning: Pruning, changed: PrunedFiles): Pruning {
  const { files, bytes, kept } = pruning;
  return {
    ...pruning,
    files: files - changed.files,
    bytes: bytes - changed.bytes,
    kept: { ...kept, changed: kept.changed + changed.files },
  };
}

interface Found {
  pruning: Pruning;
  /** Ids of the items whose files go. */
  items: ReadonlySet<number>;
  /** Files that an earlier prune left. */
  left: Iterable<PlacedFile>;
  /** Absolute paths. */
  quarantined: readonly string[];
}

async function findOld(store: Store, options: PruneOptions): Promise<Found> {
  const { before, keepPicked, workspace, signal, onProgress } = options;
  const picks = await store.picks();
  const runs = await store.runs();
  const openJobs = await unfinishedJobs(store, runs);
  const needed = await neededByOthers(store, runs, openJobs);
  const folders = new Set(runs.map(jobFolder));
  const kept = Object.fromEntries(keptReasons.map((reason) => [reason, 0])) as Pruning["kept"];
  const found: ArchivedOutput[] = [];
  // An item keeps all its files, or none.
  const keeps = new Map<number, KeptReason | "newer">();
  const whyKept = ({ item, savedAt, bucket, file, sha256, ...output }: ArchivedOutput) => {
    if (savedAt >= before) return "newer";
    if (item.state !== "archived" || openJobs.has(item.jobId)) return "unfinished";
    if (bucket != null) return "bucket";
    if (item.approval === "waiting") return "undecided";
    if (keepPicked && picks.has(item.id)) return "picked";
    if (needed.items.has(item.id) || needed.hashes.has(`sha256:${sha256}`)) return "needed";
    // The database may have come from somebody else.
    if (!folders.has(jobFolder(output)) || !isBelow(file)) return "elsewhere";
    return null;
  };
  const closed = runs.filter(({ jobId }) => !openJobs.has(jobId));
  const left = await leftBefore(closed, needed.hashes);
  for await (const page of store.archived())
    for (const output of page) {
      // The history does not know yet that it was pruned.
      left.delete(join(jobFolder(output), output.file));
      const why = whyKept(output);
      if (why !== null) keeps.set(output.item.id, why);
      if (why !== null && why !== "newer") kept[why]++;
      else if (why === null) found.push(slim(output));
    }
  for (const [at, output] of found.entries()) {
    if (signal.aborted) throw new EarlyExit("interrupted", "interrupted; nothing was removed");
    onProgress("checked", at, found.length);
    if (keeps.has(output.item.id)) continue;
    const state = await stateOf(placeOf(output));
    if (state === "changed" || state === "elsewhere") keeps.set(output.item.id, state);
  }
  const groups = new Map<string, PrunedGroup>();
  const count = (
    job: string,
    edition: string,
    { jobFolder: folder, file, bytes }: PlacedFile,
    picked: boolean,
  ) => {
    const name = JSON.stringify([job, edition, folder]);
    const group = groups.get(name) ?? { ...none, job, edition, folder, superseded: 0, picked: 0 };
    groups.set(name, group);
    group.files++;
    group.bytes += bytes;
    if (isSuperseded(file)) group.superseded++;
    if (picked) group.picked++;
  };
  const items = new Set<number>();
  for (const output of found) {
    const { item, jobName } = output;
    const why = keeps.get(item.id);
    if (why === "newer") continue;
    if (why !== undefined) {
      kept[why]++;
      continue;
    }
    items.add(item.id);
    count(jobName, item.edition, placeOf(output), picks.has(item.id));
  }
  for (const { jobName, edition, ...file } of left.values()) count(jobName, edition, file, false);
  const old = quarantinedIn(closed, before);
  const all = [...groups.values()];
  const touched = new Set([
    ...all.map(({ folder }) => folder),
    ...old.map(({ path }) => dirname(dirname(path))),
  ]);
  const outside = outValues(
    runs.filter((run) => touched.has(jobFolder(run))),
    workspace,
  );
  const pruning = { ...sumOf(all), groups: all, quarantine: sumOf(old), kept, outside };
  return { pruning, items, left: left.values(), quarantined: old.map(({ path }) => path) };
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

const unsettled: readonly ItemState[] = [...uncollectedStates, "held", "planned", "blocked"];

/** What failed items, which can be retried, and other unfinished jobs take as inputs. */
async function neededByOthers(
  store: Store,
  runs: readonly Run[],
  openJobs: ReadonlySet<number>,
): Promise<{ items: ReadonlySet<number>; hashes: ReadonlySet<string> }> {
  const items = new Set<number>();
  const hashes = new Set<string>();
  const addFiles = ({ files = {} }: Pick<Item, "files">) => {
    for (const sha256 of Object.values(files)) hashes.add(sha256);
  };
  const names = new Set(runs.filter(({ jobId }) => openJobs.has(jobId)).map(({ jobName }) => jobName));
  for (const name of names)
    for await (const page of store.history(name)) for (const item of page) addFiles(item);
  for (const run of runs)
    for (const item of await store.items(run.id, ["failed"])) {
      if (item.vanished) continue;
      addFiles(item);
      for (const { id } of await store.parentsOf(item.id)) if (id !== null) items.add(id);
    }
  return { items, hashes };
}

/** A file as it was archived. */
interface PlacedFile {
  jobFolder: string;
  /** Relative to it. */
  file: string;
  bytes: number;
  sha256: string;
}

function placeOf(output: ArchivedOutput): PlacedFile {
  const { file, bytes, sha256 } = output;
  return { jobFolder: jobFolder(output), file, bytes, sha256 };
}

/**
 * What is there under the name of a file: nothing, the file as it was archived, something else, or what a symbolic link leads
 * to. The job's folder itself may be a link.
 */
async function stateOf(file: PlacedFile): Promise<"none" | "own" | "changed" | "elsewhere"> {
  const path = join(file.jobFolder, file.file);
  try {
    // Some systems normalise accents and case.
    const below = join(await realpath(file.jobFolder), posix.dirname(file.file));
    if (foldName(await realpath(dirname(path))) !== foldName(below)) return "elsewhere";
    const facts = await lstat(path);
    if (!facts.isFile() || facts.size !== file.bytes) return "changed";
    return (await sha256Of(createReadStream(path))) === file.sha256 ? "own" : "changed";
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return "none";
    if (code === "ELOOP" || code === "ENOTDIR") return "elsewhere";
    throw error;
  }
}

/** Files whose index line says that they were pruned, and that are still there: by their paths. */
async function leftBefore(
  runs: readonly Run[],
  needed: ReadonlySet<string>,
): Promise<Map<string, PlacedFile & { jobName: string; edition: string }>> {
  const left = new Map<string, PlacedFile & { jobName: string; edition: string }>();
  for (const [folder, { jobName }] of new Map(runs.map((run) => [jobFolder(run), run]))) {
    const index = await JobIndex.open(nodeDisk, folder);
    for (const { check, file, bytes, sha256, edition = "" } of index.latest()) {
      // The name may have been given to another file since.
      if (!isPruned(check) || index.identityAt(file) !== undefined || needed.has(`sha256:${sha256}`))
        continue;
      const placed = { jobFolder: folder, file, bytes, sha256 };
      if ((await stateOf(placed)) === "own") left.set(join(folder, file), { ...placed, jobName, edition });
    }
  }
  return left;
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

/** Returns what stays because somebody has changed it meanwhile. */
async function removeFiles(
  store: Store,
  items: ReadonlySet<number>,
  all: number,
  { clock, signal, onProgress }: PruneOptions,
): Promise<PrunedFiles> {
  const check = `${prunedCheck} ${new Date(clock.now()).toISOString().slice(0, 10)}`;
  const indexes = new Indexes(nodeDisk);
  let done = 0;
  let stays = none;
  for await (const page of store.archived()) {
    // What was begun is finished.
    if (signal.aborted) break;
    const old = page.filter(({ item }) => items.has(item.id));
    const changed = new Set<number>();
    for (const output of old) {
      const state = await stateOf(placeOf(output));
      if (state === "changed" || state === "elsewhere") changed.add(output.item.id);
    }
    stays = sumOf([
      stays,
      ...old.filter(({ item }) => changed.has(item.id)).map(({ bytes }) => ({ files: 1, bytes })),
    ]);
    const outputs = old.filter(({ item }) => !changed.has(item.id));
    await Promise.all(
      outputs.map(async (output) => (await indexes.of(jobFolder(output))).add({ ...lineOf(output), check })),
    );
    await store.pruned([...new Set(outputs.map(({ item }) => item.id))], {
      check,
      note: noteOfPruned(check),
    });
    for (const output of outputs) {
      await removeFile(placeOf(output));
      onProgress("removed", ++done, all);
    }
  }
  return stays;
}

/** Removes a file that was found to be the archive's own. */
async function removeFile({ jobFolder: folder, file, sha256 }: PlacedFile): Promise<void> {
  if (!existsSync(join(folder, file))) return;
  await removeName(nodeDisk, join(folder, file));
  await removeName(nodeDisk, join(folder, sidecarOf(file)));
  await removeName(nodeDisk, join(folder, thumbnailName(sha256)));
  for (let empty = posix.dirname(file); empty !== "."; empty = posix.dirname(empty))
    if (!(await isRemoved(join(folder, empty)))) break;
}

/** False for a folder that is not empty. */
async function isRemoved(folder: string): Promise<boolean> {
  return rmdir(folder).then(
    () => true,
    () => false,
  );
}
