import { join } from "node:path";
import { copyFault, copyTo, restoreFromCopy } from "../../archive/copies.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { type Examination, examine, type FileFinding, type KnownFile } from "../../archive/examine.js";
import { type IndexLine, identityOf } from "../../archive/index-file.js";
import { setAside, writeLine } from "../../archive/repair.js";
import type { Clock, Random } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { toNumber } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import type { ArchivedOutput, Item, Run, Store } from "../../core/ports/store.js";
import { ownVersion } from "../../package-file.js";
import { continueJob } from "../run/continue-job.js";
import { openCopies } from "../run/copies.js";
import type { JobOptions } from "../run/run-job.js";
import { mustHaveRuns } from "../workspace/history.js";
import { lockWorkspace } from "../workspace/open.js";
import { withStore } from "../workspace/state.js";
import type { Workspace } from "../workspace/workspace.js";

/** How much of the archive is read: sizes only, every byte, a percentage of the files, or the files of some identities. */
export type Depth = "sizes" | "all" | { percent: number } | { files: ReadonlySet<string> };

/** A job's folder with what the workspace has on record about it. */
export interface Folder {
  path: string;
  outputs: ArchivedOutput[];
  /** The options of its latest run, which say whether its files have copies. */
  options: RunOptions;
  /** Items of the job that were charged and whose files are not downloaded yet, or could not be. */
  owed: Item[];
}

export interface FolderReport extends Folder {
  examination: Examination;
}

export interface VerifyOptions {
  workspace: Workspace;
  depth: Depth;
  clock: Clock;
  /** How buckets are reached. */
  environment: Readonly<Record<string, string | undefined>>;
  random: Random;
  signal: AbortSignal;
  /** Called with the number of files done and the total. */
  onProgress(done: number, all: number): void;
}

/** Verifies the archive of every job of the workspace. Throws EarlyExit if there is no archive, or when interrupted. */
export async function verifyWorkspace(options: VerifyOptions): Promise<FolderReport[]> {
  const { workspace, clock, depth, random, signal, onProgress } = options;
  mustHaveRuns(workspace);
  const folders = await withStore(workspace, clock, foldersOf);
  const all = folders.reduce((sum, { outputs }) => sum + outputs.length, 0);
  let done = 0;
  const reports: FolderReport[] = [];
  for (const folder of folders) {
    const reads = readsOf(depth, folder, random);
    const onFile = () => onProgress(++done, all);
    const known = folder.outputs.map(knownFile);
    const examination = await examine(nodeDisk, folder.path, known, { reads, onFile, signal });
    if (signal.aborted) throw new EarlyExit("interrupted", "interrupted; nothing was changed");
    examination.findings.push(...(await uncopied(folder, examination, reads, options)));
    reports.push({ ...folder, examination });
  }
  return reports;
}

/** Every folder that a run of the workspace writes to, even if nothing was archived there. */
async function foldersOf(store: Store): Promise<Folder[]> {
  const folders = new Map<string, Folder>();
  for (const run of await store.runs()) {
    const path = jobFolder(run);
    const before = folders.get(path);
    if (before) before.options = run.options;
    if (before) continue;
    const items = await store.itemsOf(run.jobName);
    const owed = items.filter(({ state }) => state === "ready" || state === "held");
    folders.set(path, { path, outputs: [], options: run.options, owed });
  }
  for (const output of await store.archived()) folders.get(jobFolder(output))?.outputs.push(output);
  return [...folders.values()];
}

/** The intact files of a folder without a good copy in its bucket. */
async function uncopied(
  { path, outputs, options }: Folder,
  { findings }: Examination,
  reads: (file: KnownFile) => boolean,
  { environment, signal }: Pick<VerifyOptions, "environment" | "signal">,
): Promise<FileFinding[]> {
  const copies = await openCopies(options, environment);
  if (copies === null) return [];
  const broken = new Set(findings.flatMap((finding) => ("identity" in finding ? [finding.identity] : [])));
  const found: FileFinding[] = [];
  try {
    for (const output of outputs) {
      const known = knownFile(output);
      if (signal.aborted) throw new EarlyExit("interrupted", "interrupted; nothing was changed");
      const reason = broken.has(known.identity)
        ? null
        : await copyFault(copies.bucket, path, known, reads(known));
      if (reason !== null)
        found.push({ kind: "uncopied", file: known.file, identity: known.identity, reason });
    }
    return found;
  } finally {
    copies.close();
  }
}

export function knownFile(
  output: ArchivedOutput,
): KnownFile & { item: string; task: string; output: number } {
  const { item, taskId: task, number, file, bytes, sha256 } = output;
  const identity = identityOf({ key: item.key, task, output: number });
  return { identity, file, bytes, sha256, item: item.rowId, task, output: number };
}

/** The percentage is a random sample, so that repeated runs read everything eventually. */
function readsOf(depth: Depth, { outputs }: Folder, random: Random): (file: KnownFile) => boolean {
  if (depth === "sizes") return () => false;
  if (depth === "all") return () => true;
  if ("files" in depth) return ({ identity }) => depth.files.has(identity);
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

/** Removes leftovers. Throws EarlyExit while a run is in progress: they may be its own. */
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
    await lock.release();
  }
}

export function isLeftover(finding: FileFinding): boolean {
  return finding.kind === "leftover";
}

/** One missing or damaged output, and where it belongs. */
interface Broken {
  folder: string;
  output: ArchivedOutput;
  /** What is wrong with the file; null when it is missing. */
  reason: string | null;
}

/**
 * Repairs what was found: adds missing index lines, sets damaged files aside, and downloads missing files again from
 * their tasks. That costs no credits: nothing is submitted, not even items that a run left planned.
 */
export async function repair(reports: readonly FolderReport[], options: JobOptions): Promise<void> {
  for (const { output, folder } of unindexed(reports)) await writeLine(nodeDisk, folder, lineOf(output));
  for (const report of reports) await mendWithCopies(report, options);
  const groups = new Map<number, Task[]>();
  const give = (run: number | null, task: Task) => {
    if (run !== null) groups.set(run, [...(groups.get(run) ?? []), task]);
  };
  // An adopted file has no task to download from.
  for (const each of reports.flatMap(brokenIn).filter(({ output }) => output.taskId !== "")) {
    if (await isBack(each)) continue;
    const run = each.output.item.runId ?? each.output.paidIn;
    give(run, (store, of) => giveBack(store, of, each));
  }
  for (const item of reports.flatMap(owedIn)) give(item.runId, (store) => askAgain(store, item));
  for (const [number, tasks] of groups) await refetch(number, tasks, options);
}

/** Prepares one output so that its run downloads it again. The workspace is locked. */
type Task = (store: Store, run: Run) => Promise<void>;

/** Copies what the bucket lacks, and brings back from it what the disk lacks. */
async function mendWithCopies(report: FolderReport, { environment, interrupt }: JobOptions): Promise<void> {
  const { path, outputs, options, examination } = report;
  const copies = await openCopies(options, environment);
  if (copies === null) return;
  const known = new Map(outputs.map((output) => [knownFile(output).identity, output]));
  try {
    for (const finding of examination.findings) {
      const output = "identity" in finding ? known.get(finding.identity) : undefined;
      if (output === undefined || interrupt.aborted) continue;
      if (finding.kind === "uncopied") await copyTo(copies.bucket, path, { ...output, ...knownFile(output) });
      if (finding.kind === "missing") await restoreFromCopy(nodeDisk, copies.bucket, path, knownFile(output));
    }
  } finally {
    copies.close();
  }
}

async function isBack({ folder, output, reason }: Broken): Promise<boolean> {
  return reason === null && (await nodeDisk.size(join(folder, output.file))) === output.bytes;
}

async function refetch(number: number, tasks: readonly Task[], options: JobOptions): Promise<void> {
  await continueJob(
    { ...options, fetchOnly: true },
    {
      async choose(store) {
        const run = await store.run(number);
        if (!run) throw new Error(`no run ${number} for an archived item`);
        return run;
      },
      async change({ store }, run) {
        for (const task of tasks) await task(store, run);
        return run;
      },
    },
    async () => undefined,
  );
}

/** The order matters: after a crash, a file that was set aside must still be known as damaged. */
async function giveBack(store: Store, run: Run, { folder, output, reason }: Broken): Promise<void> {
  if (reason !== null) await setAside(nodeDisk, folder, knownFile(output), reason);
  if (output.item.runId === null) await store.add(run.id, [output.item]);
  await store.lost(output.item.id, output.number);
  if (output.item.state === "held") return askAgain(store, output.item);
  // Its URL has probably expired; asking for a new one is quicker than trying it.
  await store.expire(output.item.id, "its file is downloaded again");
}

/** An output that an earlier repair could not download. */
async function askAgain(store: Store, { id, state }: Item): Promise<void> {
  const attempt = await store.attempt(id);
  if (!attempt?.taskId) return;
  if (state === "held") await store.apply(id, "refetch", { nextAt: 0 });
  await store.expire(id, "fetched again");
}

/** Items in the index whose file is missing, as the workspace knows. */
function owedIn({ owed, examination }: FolderReport): Item[] {
  const missing = new Set(
    examination.findings.flatMap((finding) =>
      finding.kind === "missing" ? [finding.identity.split("\n")[0]] : [],
    ),
  );
  return owed.filter(({ key }) => missing.has(key));
}

function brokenIn({ path, outputs, examination }: FolderReport): Broken[] {
  const known = new Map(outputs.map((output) => [knownFile(output).identity, output]));
  return examination.findings.flatMap((finding) => {
    if (finding.kind !== "missing" && finding.kind !== "damaged") return [];
    const output = known.get(finding.identity);
    if (output === undefined) return [];
    return [{ folder: path, output, reason: finding.kind === "damaged" ? finding.reason : null }];
  });
}

function unindexed(reports: readonly FolderReport[]): { folder: string; output: ArchivedOutput }[] {
  return reports.flatMap(({ path, outputs, examination }) => {
    const wanted = new Set(
      examination.findings.flatMap((finding) => (finding.kind === "unindexed" ? [finding.identity] : [])),
    );
    return outputs
      .filter((output) => wanted.has(knownFile(output).identity))
      .map((output) => ({ folder: path, output }));
  });
}

function lineOf(output: ArchivedOutput): IndexLine {
  const { item, number, file, bytes, sha256, mime, check, taskId, externalTaskId, charged } = output;
  const { rowId, key, model, prompt, params, inputs } = item;
  return {
    item: rowId,
    key,
    task: taskId,
    external_task: externalTaskId,
    model,
    prompt,
    params,
    inputs,
    credits: charged === null ? null : toNumber(charged),
    created: output.createdAt,
    completed: output.completedAt,
    output: number,
    file,
    bytes,
    sha256,
    mime,
    check,
    saved: new Date(output.savedAt).toISOString(),
    bulkgen: ownVersion(),
  };
}
