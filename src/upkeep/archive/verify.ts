import { join } from "node:path";
import { copyFault } from "../../archive/copies.js";
import { jobFolder } from "../../archive/disk/names.js";
import { type Examination, examine, type FileFinding, type KnownFile } from "../../archive/examine.js";
import { identityOf } from "../../archive/index-file.js";
import { bucketFilesAtOnce, mapAtOnce } from "../../archive/map-at-once.js";
import type { Clock, Random } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { ItemState } from "../../core/item.js";
import type { RunOptions } from "../../core/next/options.js";
import type { Disk } from "../../core/ports/disk.js";
import type { ArchivedOutput, Item } from "../../core/ports/store.js";
import type { Store } from "../../store/workspace/workspace.js";
import type { Environment } from "../../text/environment.js";
import { mustHaveRuns } from "../../workspace/history.js";
import { lockWorkspace } from "../../workspace/open.js";
import { archiveBucket, asUsage, diskWith, openCopies } from "../../workspace/outputs-place.js";
import { withStore } from "../../workspace/state.js";
import type { Workspace } from "../../workspace/workspace.js";

/** How much of the archive is read: sizes only, every byte, a percentage of the files, or the files of some identities. */
export type Depth = "sizes" | "all" | { percent: number } | { files: ReadonlySet<string> };

/** What is kept of each output while its folder is examined. */
interface RecordedFile extends KnownFile {
  item: string;
  task: string;
  output: number;
  bucket: string | null;
}

/** Of an item with a task whose files are not all archived. */
export const owedStates: readonly ItemState[] = ["processing", "overdue", "ready", "held"];

/** A job's folder with what the workspace has recorded about it. */
interface Folder {
  path: string;
  known: RecordedFile[];
  /** The options of its latest run, which say whether its files have copies. */
  options: RunOptions;
  /** Items of the job that were charged and whose files are not downloaded yet, or could not be. */
  owed: Item[];
}

export interface FolderReport extends Folder {
  /** With the buckets that have outputs of the folder. */
  disk: Disk;
  examination: Examination;
}

export interface VerifyOptions {
  workspace: Workspace;
  depth: Depth;
  clock: Clock;
  /** How buckets are reached. */
  environment: Environment;
  random: Random;
  signal: AbortSignal;
  /** Called with the number of files done and the total. */
  onProgress(done: number, all: number): void;
}

/** Verifies the archive of every job of the workspace. Throws EarlyExit if there is no archive, or when interrupted. */
export async function verifyWorkspace(options: VerifyOptions): Promise<FolderReport[]> {
  const { workspace, clock, depth, environment, random, signal, onProgress } = options;
  mustHaveRuns(workspace);
  const folders = await withStore(workspace, clock, foldersOf);
  const all = folders.reduce((sum, { known }) => sum + known.length, 0);
  const places = placesOf(folders);
  let done = 0;
  const reports: FolderReport[] = [];
  for (const folder of folders) {
    const reads = readsOf(depth, folder, random);
    const onFile = () => onProgress(++done, all);
    const disk = diskWith(bucketsOf(folder), folder.path, environment, signal);
    try {
      const isElsewhere = (identity: string) => (places.get(identity) ?? folder.path) !== folder.path;
      const examination = await examine(disk, folder.path, folder.known, {
        reads,
        isElsewhere,
        onFile,
        signal,
      });
      if (signal.aborted) throw interrupted();
      for (const finding of await uncopied(folder, examination, reads, options))
        examination.findings.push(finding);
      reports.push({ ...folder, disk, examination });
    } catch (error) {
      throw signal.aborted ? interrupted() : asUsage(error);
    }
  }
  return reports;
}

/** The folder that has each output by now. An output of the only folder is nowhere else. */
function placesOf(folders: readonly Folder[]): ReadonlyMap<string, string> {
  const places = new Map<string, string>();
  if (folders.length > 1)
    for (const { path, known } of folders) for (const { identity } of known) places.set(identity, path);
  return places;
}

/** The buckets that have, or will have, outputs of the folder instead of the disk. */
function bucketsOf({ known, options }: Folder): string[] {
  const own = options.archiveOnly ? archiveBucket(options) : null;
  return [own, ...new Set(known.map(({ bucket }) => bucket))].filter((bucket) => bucket != null);
}

function interrupted(): EarlyExit {
  return new EarlyExit("interrupted", "interrupted; nothing was changed");
}

/** Every folder that a run of the workspace writes to, even if nothing was archived there, and that it has written to. */
async function foldersOf(store: Store): Promise<Folder[]> {
  const folders = new Map<string, Folder>();
  const ofJob = new Map<string, Pick<Folder, "options" | "owed">>();
  const folderAt = (path: string, { options, owed }: Pick<Folder, "options" | "owed">) => {
    const folder = folders.get(path) ?? { path, known: [], options, owed };
    folders.set(path, folder);
    return folder;
  };
  for (const run of await store.runs()) {
    const { jobName, options } = run;
    const owed = ofJob.get(jobName)?.owed ?? [];
    ofJob.set(jobName, { options, owed });
    for (const item of await store.items(run.id, owedStates)) owed.push(item);
    folderAt(jobFolder(run), { options, owed }).options = options;
  }
  for await (const page of store.archived())
    for (const output of page) {
      const job = ofJob.get(output.jobName);
      if (job) folderAt(jobFolder(output), job).known.push(knownFile(output));
    }
  return [...folders.values()];
}

/** The intact files of a folder without a good copy in its bucket. */
async function uncopied(
  { path, known: all, options }: Folder,
  { findings }: Examination,
  reads: (file: KnownFile) => boolean,
  { environment, signal }: Pick<VerifyOptions, "environment" | "signal">,
): Promise<FileFinding[]> {
  const copies = await openCopies(options, environment);
  if (copies === null) return [];
  const broken = new Set(findings.flatMap((finding) => ("identity" in finding ? [finding.identity] : [])));
  // A file that is only in a bucket has no copy, and was checked there.
  const copied = all.filter(({ identity, bucket }) => bucket === null && !broken.has(identity));
  try {
    const found = await mapAtOnce(copied, bucketFilesAtOnce, async (known): Promise<FileFinding[]> => {
      if (signal.aborted) throw interrupted();
      const { file, identity } = known;
      const reason = await copyFault(copies.bucket, path, known, reads(known));
      return reason === null ? [] : [{ kind: "uncopied", file, identity, reason }];
    });
    return found.flat();
  } finally {
    copies.close();
  }
}

export function knownFile(output: ArchivedOutput): RecordedFile {
  const { item, taskId: task, number, file, bytes, sha256, bucket = null } = output;
  const identity = identityOf({ key: item.key, task, output: number });
  return { identity, file, bytes, sha256, item: item.rowId, task, output: number, bucket };
}

/** The percentage is a random sample, so that repeated runs read everything eventually. */
function readsOf(depth: Depth, { known }: Folder, random: Random): (file: KnownFile) => boolean {
  if (depth === "sizes") return () => false;
  if (depth === "all") return () => true;
  if ("files" in depth) return ({ identity }) => depth.files.has(identity);
  const lots = known.map(({ identity }) => ({ identity, lot: random.next() }));
  const count = Math.ceil((known.length * depth.percent) / 100);
  const drawn = new Set(
    lots
      .toSorted((a, b) => a.lot - b.lot)
      .slice(0, count)
      .map(({ identity }) => identity),
  );
  return ({ identity }) => drawn.has(identity);
}

/** Removes leftovers. Throws EarlyExit while a run is in progress: they may be its own. */
export async function removeStrays(
  options: Pick<VerifyOptions, "workspace" | "clock" | "signal">,
  reports: readonly FolderReport[],
): Promise<number> {
  const lock = await lockWorkspace({ ...options, ifLocked: "fail", onLocked: () => {} });
  try {
    let removed = 0;
    for (const { path, disk, examination } of reports) {
      for (const { file } of examination.findings.filter(isLeftover)) {
        // A run that has ended since has removed its own.
        if ((await disk.size(join(path, file))) === null) continue;
        await disk.unlink(join(path, file));
        removed++;
      }
    }
    return removed;
  } finally {
    await lock.release();
  }
}

function isLeftover(finding: FileFinding): boolean {
  return finding.kind === "leftover";
}
