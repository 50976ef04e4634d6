import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { mediaFields } from "../../api/inputs.js";
import { foldName, isOwnFolder, jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { indexName, isPruned, JobIndex, sidecarOf } from "../../archive/index-file.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { Run } from "../../core/ports/store.js";
import { manifestFolder } from "../../manifest/folder.js";
import { isLocalPath } from "../../manifest/local-inputs.js";
import { openSource } from "../../manifest/read.js";
import { promptFile } from "../../manifest/templates/prompt-file.js";
import type { Store } from "../../store/workspace/workspace.js";
import { leavesReally } from "../../text/inside.js";
import { leaves } from "../../text/within.js";
import { withStore } from "../../workspace/state.js";
import { sheetOf } from "../../workspace/takes/sheet-takes.js";
import { type Workspace, workspaceExists } from "../../workspace/workspace.js";

/**
 * Files that no command replaces under a name that a person typed, not even with --force: what was paid for, what says that it
 * was paid for, and what the job is made from.
 */

export interface ToWrite {
  /** As a person named it. */
  file: string;
  /** Absolute. */
  path: string;
  workspace: Workspace;
}

interface Reads {
  /** The manifest of the command, if it has one of its own. */
  manifest?: string;
  /** The run whose inputs are protected too. */
  run?: Run;
}

/** Throws EarlyExit if a file must not be written there. `store` is the workspace's. */
export async function refuseKept(to: ToWrite, store: Store, reads: Reads = {}): Promise<void> {
  const why = (await whyNever(to)) ?? (existsSync(to.path) ? await whyRead(to, store, reads) : null);
  if (why !== null) throw kept(to, why);
}

/** `refuseKept` for a command that has not opened the workspace, which there may not be yet. */
export async function refuseKeptIn(to: ToWrite, clock: Clock, reads: Reads = {}): Promise<void> {
  if (workspaceExists(to.workspace))
    return withStore(to.workspace, clock, (store) => refuseKept(to, store, reads));
  const why = (await whyNever(to)) ?? (await readsIt(reads.manifest, realPathOf(to.path)));
  if (why !== null) throw kept(to, why);
}

function kept({ file }: ToWrite, why: string): EarlyExit {
  return new EarlyExit("usage", `${file} ${why}. Choose another file. Nothing was written.`);
}

/** Whether it is the workspace's state or an archive's, of whichever job. */
async function whyNever({ path, workspace }: ToWrite): Promise<string | null> {
  const { markerFolder, stateFile, sharedFolder } = workspace;
  const folder = [markerFolder, dirname(stateFile), sharedFolder].find((each) => !leavesReally(each, path));
  if (folder !== undefined) return `is in ${folder}, where bulkgen keeps what it knows about your runs`;
  if (!existsSync(path)) return null;
  const real = realpathSync(path);
  for (let above = dirname(real); ; above = dirname(above)) {
    if (existsSync(join(above, indexName)) && (await isOfArchive(above, real)))
      return `belongs to the archive of ${above}, and may be all that is left of what was paid for`;
    if (dirname(above) === above) return null;
  }
}

async function isOfArchive(folder: string, path: string): Promise<boolean> {
  const name = relative(folder, path).split(sep).join("/");
  const index = await JobIndex.open(nodeDisk, folder);
  let isIndex = false;
  for (const { file, check } of index.latest()) {
    isIndex = true;
    const names = isPruned(check) ? [] : [file, sidecarOf(file)];
    if (names.some((each) => foldName(each) === foldName(name))) return true;
  }
  return isIndex && (name === indexName || isOwnFolder(name.split("/")[0] ?? ""));
}

/** Whether a job is made from this file, which exists. */
async function whyRead({ path }: ToWrite, store: Store, { manifest, run }: Reads): Promise<string | null> {
  const real = realPathOf(path);
  const runs = await store.runs();
  if (runs.some((each) => join(jobFolder(each), indexName) === real)) return "is the index of an archive";
  const own = await readsIt(manifest, real);
  if (own !== null) return own;
  const ofRuns = new Map(runs.map((each) => [each.manifest, each.id]));
  for (const [file, id] of ofRuns) if (realPathOf(file) === real) return `is the manifest of run ${id}`;
  for (const file of ofRuns.keys()) {
    const why = await readsIt(file, real);
    if (why !== null) return why;
  }
  return run !== undefined && (await isInput(store, run, real))
    ? `is a file that ${basename(run.manifest)} is made from`
    : null;
}

/** Whether it is a manifest itself, the file of its rows, or a prompt file that its own texts name. */
async function readsIt(manifest: string | undefined, real: string): Promise<string | null> {
  if (manifest === undefined || !existsSync(manifest)) return null;
  if (realPathOf(manifest) === real) return "is the manifest itself";
  // Another folder has nothing that the manifest reads.
  if (leaves(realPathOf(manifestFolder(manifest)), real)) return null;
  const { rowsFile, job } = await openSource(manifest, {});
  const isRead =
    (rowsFile !== undefined && realPathOf(rowsFile) === real) ||
    textsIn(job).some((text) => namesPrompt(text, manifest, real));
  return isRead ? `is a file that ${basename(manifest)} reads` : null;
}

/** Whether a row of the run, or an item of its job, names the file. */
async function isInput(store: Store, run: Run, real: string): Promise<boolean> {
  const folder = manifestFolder(run.manifest);
  if (leaves(realPathOf(folder), real)) return false;
  for await (const page of (await sheetOf(store, run))?.pages() ?? [])
    for (const { cells } of page)
      if (Object.values(cells).some((cell) => namesPrompt(cell, run.manifest, real))) return true;
  for await (const page of store.history(run.jobName))
    for (const { inputs } of page)
      for (const field of mediaFields) {
        const value = inputs[field];
        if (value !== undefined && isLocalPath(value) && realPathOf(resolve(folder, value)) === real)
          return true;
      }
  return false;
}

/** Whether a text names the prompt file; a template in its name stands for any text. */
function namesPrompt(text: string, manifest: string, real: string): boolean {
  const name = promptFile(text);
  if (name === null) return false;
  const wanted = relative(realPathOf(manifestFolder(manifest)), real)
    .split(sep)
    .join("/");
  const parts = name.replace(/^\.\//, "").split(/\{\{.*?\}\}|\{%.*?%\}/);
  return new RegExp(
    `^${parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`,
    "i",
  ).test(wanted);
}

/** Every text of a job. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return value !== null && typeof value === "object" ? Object.values(value).flatMap(textsIn) : [];
}

/** Without links; the path itself for what does not exist. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
