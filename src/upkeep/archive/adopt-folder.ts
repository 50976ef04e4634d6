import { createReadStream, type Dirent, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, extname, join, relative, sep } from "node:path";
import { openInspector } from "../../archive/check/inspector.js";
import { foldName, jobFolder, safeName } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { indexFacts } from "../../archive/index-file.js";
import type { SaveRequest } from "../../archive/save.js";
import { openArchive } from "../../archive/save.js";
import { EarlyExit } from "../../core/exit.js";
import { nothingToSubmit } from "../../core/next/options.js";
import type { PlannedItem } from "../../core/ports/draft.js";
import type { Download } from "../../core/ports/send.js";
import type { NewItem, Run } from "../../core/ports/store.js";
import { fileName } from "../../core/variant.js";
import { unfinishedOf } from "../../job/paid/owner.js";
import { manifestProblems, mustBeManifest, prepare, type SheetOptions } from "../../job/run/prepare.js";
import type { JobOptions } from "../../job/run/run-job.js";
import { ownVersion } from "../../package-file.js";
import type { Plan } from "../../plan/plan.js";
import { openDraft } from "../../store/draft/draft.js";
import { count } from "../../text/amounts.js";
import { openWorkspaceSession, prepareOutFolder, type WorkspaceSession } from "../../workspace/open.js";

export interface AdoptOptions extends JobOptions, SheetOptions {
  /** Absolute paths. */
  folder: string;
  manifest: string;
  /** Only report what would be adopted. */
  dryRun: boolean;
}

export interface Adoption {
  job: string;
  taken: { rowId: string; from: string; file: string | null }[];
  /** Files that are not what their row asks for. */
  refused: { rowId: string; from: string; reason: string }[];
  /** Files whose rows are archived, submitted or skipped. */
  kept: string[];
  /** Files whose name matches no row, or more than one. */
  unmatched: string[];
  /** Items still to be made. */
  left: number;
}

/**
 * Whether an item is not paid for yet, whatever became of its run. An item already at the service is not replaced by a
 * file.
 */
function isOpen({ state, due }: PlannedItem): boolean {
  return due ? state !== "archived" : state === "failed";
}

/**
 * Archives files made elsewhere for the rows whose names they match. Each file is copied, checked and hashed like a
 * download, so its row costs nothing. The source folder is not changed.
 */
export async function adoptFolder(options: AdoptOptions): Promise<Adoption> {
  const files = await filesIn(options.folder);
  await mustBeManifest(options.manifest);
  const opened = await openWorkspaceSession({
    ...options,
    connect: () => options.connect(options.manifest),
    limits: {},
    onDailyLimit: "stop",
    signal: options.interrupt,
  });
  const draft = openDraft();
  try {
    const { origin, sandbox } = opened.connection;
    const { account, store } = opened;
    const after = { given: {}, configured: {} };
    const asked = { ...options, after, run: { maxCredits: null }, origin, sandbox, account, store };
    const { plan, me } = await prepare({ ...asked, draft, signal: options.interrupt });
    if (plan.problems.length > 0) throw manifestProblems(plan.problems);
    const others = plan.blockers.find(({ kind }) => kind === "others_run");
    if (others) throw new EarlyExit("usage", `${others.message} Nothing was changed.`);
    const items = [...plan.items];
    const { matches, kept, unmatched } = match(options.folder, files, items);
    const left = items.filter(isOpen).length - matches.length;
    const taken = matches.map(({ item, path }) => ({ rowId: item.rowId, from: path, file: null }));
    const { job } = plan;
    if (options.dryRun || matches.length === 0) return { job, taken, refused: [], kept, unmatched, left };
    const run = await runFor(options, opened, plan, me.user.id);
    return { job, kept, unmatched, ...(await take(options, opened, run, matches, left)) };
  } finally {
    draft.close();
    await opened.close();
  }
}

interface Match {
  item: PlannedItem;
  path: string;
}

async function filesIn(folder: string): Promise<string[]> {
  const expected = `expected a folder with media files, got ${folder}`;
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new EarlyExit("usage", expected);
  const entries: Dirent[] = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !relative(folder, path).split(sep).some(isLeftAlone))
    .toSorted();
}

/** Files that are skipped: hidden ones, such as bulkgen's own records, and files of a rehearsal. */
function isLeftAlone(name: string): boolean {
  return name.startsWith(".") || name === "sandbox-outputs";
}

/** A file belongs to the row whose output name or id it matches, with or without its parent folders. */
function match(folder: string, files: readonly string[], items: readonly PlannedItem[]) {
  const byName = new Map<string, Set<PlannedItem>>();
  for (const item of items) {
    for (const name of [fileName(item), item.rowId]) {
      const key = foldName(safeName(name));
      byName.set(key, (byName.get(key) ?? new Set()).add(item));
    }
  }
  const matches: Match[] = [];
  const kept: string[] = [];
  const unmatched: string[] = [];
  const given = new Set<PlannedItem>();
  for (const path of files) {
    const stem = (name: string) => foldName(safeName(name.slice(0, name.length - extname(name).length)));
    const found = byName.get(stem(relative(folder, path))) ?? byName.get(stem(basename(path)));
    const [item, ...others] = [...(found ?? [])].filter(isOpen);
    if (item === undefined && found !== undefined) kept.push(path);
    else if (item === undefined || others.length > 0 || given.has(item)) unmatched.push(path);
    else {
      given.add(item);
      matches.push({ item, path });
    }
  }
  return { matches, kept, unmatched };
}

/** The job's unfinished run, or a new run that is finished at once. */
async function runFor(
  options: AdoptOptions,
  opened: WorkspaceSession,
  plan: Plan,
  accountId: string,
): Promise<Run> {
  const { store, connection } = opened;
  const unfinished = unfinishedOf(await store.runs(), plan.job, plan.edition);
  const { outFolder } = options.workspace;
  prepareOutFolder(jobFolder(unfinished ?? { outFolder, jobName: plan.job }));
  const { leftOut } = plan;
  await opened.account.accounts.leftOut(opened.account.accountId(), leftOut);
  if (unfinished) {
    await store.setRun(unfinished.id, { options: { ...unfinished.options, leftOut } });
    return unfinished;
  }
  const job = await store.job(plan.job);
  const { manifest, clock } = options;
  const { origin, sandbox } = connection;
  const { edition } = plan;
  const run = await store.startRun(job.id, {
    manifest,
    origin,
    accountId,
    edition,
    outFolder,
    // A redo of an adopted item runs with these options, so no cap may refuse it.
    options: { ...nothingToSubmit, maxCredits: null, sandbox, leftOut },
  });
  await store.keepSheet(run.id, plan.sheet);
  await store.setRun(run.id, { state: "finished", exit: "done", endedAt: clock.now(), requests: 2 });
  return run;
}

async function take(
  { clock, interrupt }: AdoptOptions,
  { store }: WorkspaceSession,
  run: Run,
  matches: readonly Match[],
  left: number,
): Promise<Pick<Adoption, "taken" | "refused" | "left">> {
  const inspector = openInspector({ clock });
  const { inspect } = inspector;
  const archive = openArchive({ disk: nodeDisk, download: readFile, clock, inspect, ...saving(run) });
  const taken: Adoption["taken"] = [];
  const refused: Adoption["refused"] = [];
  try {
    for (const { item, path } of matches) {
      if (interrupt.aborted)
        throw new EarlyExit(
          "interrupted",
          `interrupted; ${count(taken.length, "file was", "files were")} adopted`,
        );
      const result = await archive.save(requestOf(run, item, path), interrupt);
      if (result.kind === "disk")
        throw new EarlyExit("usage", `the archive cannot be written: ${result.reason}`);
      if (result.kind === "saved") {
        await store.supply(run.id, item, result);
        taken.push({ rowId: item.rowId, from: path, file: result.file });
      } else {
        const reason = result.kind === "expired" ? "it cannot be read" : result.reason;
        refused.push({ rowId: item.rowId, from: path, reason });
      }
    }
  } finally {
    await archive.close();
    await inspector.close();
  }
  return { taken, refused, left: left + refused.length };
}

function saving(run: Run): { version: string; sidecars: boolean } {
  return { version: ownVersion(), sidecars: run.options.sidecars ?? false };
}

function requestOf(run: Run, item: NewItem, path: string): SaveRequest {
  return {
    url: path,
    jobFolder: jobFolder(run),
    name: fileName(item),
    category: item.category,
    outputNumber: 1,
    outputCount: 1,
    index: indexFacts(item, null),
  };
}

/** A local file in place of a download. */
const readFile: Download = async (path) => {
  const { size } = statSync(path);
  return { status: 200, headers: { "content-length": String(size) }, body: createReadStream(path) };
};
