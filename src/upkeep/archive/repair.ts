import { join } from "node:path";
import { copyTo, restoreFromCopy } from "../../archive/copies.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { examineFile, type FileFinding } from "../../archive/examine.js";
import { JobIndex, lineOf } from "../../archive/index-file.js";
import { setAside } from "../../archive/quarantine.js";
import type { Disk } from "../../core/ports/disk.js";
import type { ArchivedOutput, Item, Run } from "../../core/ports/store.js";
import { continueJob } from "../../job/run/continue-job.js";
import type { JobOptions } from "../../job/run/run-job.js";
import type { Store } from "../../store/workspace/workspace.js";
import { lockWorkspace } from "../../workspace/open.js";
import { asUsage, openCopies } from "../../workspace/outputs-place.js";
import { type FolderReport, knownFile, owedStates } from "./verify.js";

/** An output, and the folder in which its file belongs. */
interface PlacedOutput {
  folder: string;
  disk: Disk;
  output: ArchivedOutput;
}

type Broken = Extract<FileFinding, { kind: "missing" | "damaged" }>;

/** A charged item, and a file of it that is in the index, but not on the disk, or not intact. */
interface Owed {
  folder: string;
  disk: Disk;
  broken: Broken;
  item: Item;
}

/**
 * Repairs what was found: adds missing index lines, sets damaged files aside, and downloads missing files again from
 * their tasks. That costs no credits: nothing is submitted, not even items that a run left planned. Another process may
 * have changed anything in the meantime, so everything is checked again with the workspace locked. Returns why some
 * files could not be downloaded yet; null if there are none. Throws EarlyExit while another process has the lock.
 */
export async function repair(reports: readonly FolderReport[], options: JobOptions): Promise<string | null> {
  try {
    let later: string | null = null;
    for (const [run, tasks] of await repairHere(reports, options))
      later = (await refetch(run, tasks, options)) ?? later;
    return later;
  } catch (error) {
    throw asUsage(error);
  }
}

/** An output to download again. */
interface Task {
  itemId: number;
  /** Prepares it so that its run downloads it. The workspace is locked. */
  prepare(store: Store, run: Run): Promise<void>;
}

/** Repairs what needs no download, and returns what remains by the run that is to download it. */
async function repairHere(
  reports: readonly FolderReport[],
  options: JobOptions,
): Promise<ReadonlyMap<number, readonly Task[]>> {
  const lock = await lockWorkspace({ ...options, signal: options.interrupt });
  try {
    const store = await lock.openStore();
    try {
      for (const report of reports) await repairIndex(store, report);
      for (const report of reports) await repairFromCopies(store, report, options);
      await setAsideSuperseded(store, reports);
      return await remaining(store, reports);
    } finally {
      await store.close();
    }
  } finally {
    await lock.release();
  }
}

async function remaining(store: Store, reports: readonly FolderReport[]): Promise<Map<number, Task[]>> {
  const groups = new Map<number, Task[]>();
  const give = (run: number | null, task: Task) => {
    if (run === null) return;
    const tasks = groups.get(run) ?? [];
    tasks.push(task);
    groups.set(run, tasks);
  };
  for (const each of await outputsWith(store, reports, ["missing", "damaged"])) {
    const broken = await brokenNow(store, each);
    if (broken !== null)
      give(broken.item.runId ?? each.output.paidIn, {
        itemId: broken.item.id,
        prepare: (locked, run) => giveBack(locked, run, each),
      });
  }
  for (const each of reports.flatMap(owedIn)) {
    const item = await owedNow(store, each);
    if (item !== null) give(item.runId, { itemId: item.id, prepare: (locked) => askForOwed(locked, each) });
  }
  return groups;
}

/** The item of an output as it is now; null if another file or another task is on record for the output by now. */
async function itemNow(
  store: Store,
  { item, number, file, sha256, taskId }: ArchivedOutput,
): Promise<Item | null> {
  const now = (await store.outputs(item.id)).find((output) => output.number === number);
  const attempt = await store.attempt(item.id);
  const isSame = now?.file === file && now.sha256 === sha256 && (taskId === "" || attempt?.taskId === taskId);
  return isSame ? store.item(item.id) : null;
}

/** Adds the lines that the index lacks. */
async function repairIndex(store: Store, report: FolderReport): Promise<void> {
  const unindexed = await outputsWith(store, [report], ["unindexed"]);
  if (unindexed.length === 0) return;
  const index = await JobIndex.open(nodeDisk, report.path);
  for (const { output } of unindexed) {
    const isSame = (await itemNow(store, output)) !== null;
    if (isSame && (await examineFile(report.disk, report.path, knownFile(output), false)) === null)
      await index.add(lineOf(output));
  }
}

/** What is wrong with an output that can be downloaded again, as it is now. */
async function brokenNow(
  store: Store,
  { folder, disk, output }: PlacedOutput,
): Promise<{ item: Item; reason: string | null } | null> {
  // An adopted file has no task to download from.
  const item = output.taskId === "" ? null : await itemNow(store, output);
  const finding = item && (await examineFile(disk, folder, knownFile(output), true));
  if (item === null || finding === null) return null;
  return { item, reason: finding.kind === "damaged" ? finding.reason : null };
}

async function owedNow(store: Store, { folder, disk, broken, item: { id } }: Owed): Promise<Item | null> {
  const item = await store.item(id);
  const isThere = (await disk.size(join(folder, broken.file))) !== null;
  return owedStates.includes(item.state) && isThere === (broken.kind === "damaged") ? item : null;
}

/** Copies what the bucket lacks, and brings back from it what the disk lacks. */
async function repairFromCopies(
  store: Store,
  report: FolderReport,
  { environment, interrupt }: JobOptions,
): Promise<void> {
  const { path, options } = report;
  const copies = await openCopies(options, environment);
  if (copies === null) return;
  try {
    for (const each of await outputsWith(store, [report], ["uncopied", "missing"])) {
      const known = knownFile(each.output);
      if (each.output.bucket != null) continue;
      if (interrupt.aborted || (await itemNow(store, each.output)) === null) continue;
      const finding = await examineFile(nodeDisk, path, known, true);
      if (finding === null) await copyTo(copies.bucket, path, { ...each.output, ...known });
      if (finding?.kind === "missing") await restoreFromCopy(nodeDisk, copies.bucket, path, known);
    }
  } finally {
    copies.close();
  }
}

/**
 * Sets aside damaged files of outputs that the workspace has in another folder by now. Only the index still has them, so
 * no download would replace them.
 */
async function setAsideSuperseded(store: Store, reports: readonly FolderReport[]): Promise<void> {
  const damaged = reports.flatMap(({ path, disk, examination: { findings } }) =>
    findings.flatMap((each) => (each.kind === "damaged" ? [{ path, disk, identity: each.identity }] : [])),
  );
  if (damaged.length === 0) return;
  const identities = new Set(damaged.map(({ identity }) => identity));
  const places = new Map<string, string>();
  for await (const page of store.archived())
    for (const output of page) {
      const { identity } = knownFile(output);
      if (identities.has(identity)) places.set(identity, jobFolder(output));
    }
  for (const { path, disk, identity } of damaged) {
    const line =
      (places.get(identity) ?? path) === path ? undefined : (await JobIndex.open(disk, path)).find(identity);
    const finding = line && (await examineFile(disk, path, { ...line, identity }, true));
    if (line && finding?.kind === "damaged") await setAside(disk, path, line, finding.reason);
  }
}

/** Why it ended before everything was downloaded; null if it did not. */
async function refetch(number: number, tasks: readonly Task[], options: JobOptions): Promise<string | null> {
  return continueJob(
    { ...options, fetchOnly: true },
    {
      async choose(store) {
        const run = await store.run(number);
        if (!run) throw new Error(`no run ${number} for an archived item`);
        return run;
      },
      async change({ store }, run) {
        for (const { prepare } of tasks) await prepare(store, run);
        return run;
      },
    },
    async ({ execution: { stops, reasons }, opened: { store } }) => {
      const items = await Promise.all(tasks.map(({ itemId }) => store.item(itemId)));
      if (!items.some(({ state }) => ["processing", "overdue", "ready"].includes(state))) return null;
      // Each repair stops what is not a download.
      const always = stops.find(({ kind }) => kind === "collect")?.message;
      return reasons.find((reason) => reason !== always) ?? "the service has not given them yet";
    },
  );
}

/** The order matters: if a crash follows, a file that was set aside is still on record, and is found missing. */
async function giveBack(store: Store, run: Run, each: PlacedOutput): Promise<void> {
  const broken = await brokenNow(store, each);
  if (broken === null) return;
  const { item, reason } = broken;
  const { folder, disk, output } = each;
  // The item belongs to another run by now, so this run would not download it.
  if (item.runId !== null && item.runId !== run.id) return;
  if (reason !== null) await setAside(disk, folder, knownFile(output), reason);
  if (item.runId === null) await store.add(run.id, [item]);
  await store.lost(item.id, output.number);
  if (item.state === "held") return askAgain(store, item);
  // Its URL has probably expired; asking for a new one is quicker than trying it.
  await store.expire(item.id, "its file is downloaded again");
}

async function askForOwed(store: Store, owed: Owed): Promise<void> {
  const item = await owedNow(store, owed);
  if (item === null) return;
  const { folder, disk, broken } = owed;
  const [, task = "", output] = broken.identity.split("\n");
  if (broken.kind === "damaged") {
    const known = { file: broken.file, item: item.rowId, task, output: Number(output) };
    await setAside(disk, folder, known, broken.reason);
  }
  await askAgain(store, item);
}

/** An output that an earlier repair could not download. If its task is polled anyway, there is nothing to change. */
async function askAgain(store: Store, { id, state }: Item): Promise<void> {
  if (state === "processing" || state === "overdue") return;
  const attempt = await store.attempt(id);
  if (!attempt?.taskId) return;
  if (state === "held") await store.apply(id, "refetch", { nextAt: 0 });
  await store.expire(id, "fetched again");
}

/** Items in the index whose file is missing or damaged, and is not archived as far as the workspace knows. */
function owedIn({ path, disk, owed, examination }: FolderReport): Owed[] {
  const brokenOf = new Map(
    examination.findings.flatMap((finding) =>
      isBroken(finding) ? [[finding.identity.split("\n")[0], finding]] : [],
    ),
  );
  return owed.flatMap((item) => {
    const broken = brokenOf.get(item.key);
    return broken === undefined ? [] : [{ folder: path, disk, broken, item }];
  });
}

function isBroken(finding: FileFinding): finding is Broken {
  return finding.kind === "missing" || finding.kind === "damaged";
}

/** The workspace's outputs with a finding of these kinds. */
async function outputsWith(
  store: Store,
  reports: readonly FolderReport[],
  kinds: readonly FileFinding["kind"][],
): Promise<PlacedOutput[]> {
  const wanted = new Map(
    reports.map((report) => {
      const found = report.examination.findings.filter(({ kind }) => kinds.includes(kind));
      const identities = found.flatMap((finding) => ("identity" in finding ? [finding.identity] : []));
      return [report.path, { report, identities: new Set(identities) }];
    }),
  );
  if ([...wanted.values()].every(({ identities }) => identities.size === 0)) return [];
  const placed: PlacedOutput[] = [];
  for await (const page of store.archived()) {
    for (const output of page) {
      const { report, identities } = wanted.get(jobFolder(output)) ?? {};
      if (report && identities?.has(knownFile(output).identity))
        placed.push({ folder: report.path, disk: report.disk, output });
    }
  }
  return placed;
}
