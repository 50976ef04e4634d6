import { hostname } from "node:os";
import { join } from "node:path";
import { openInspector } from "../../archive/check/inspector.js";
import { copyIndex, savingCopies } from "../../archive/copies.js";
import { bucketDisk } from "../../archive/disk/bucket-disk.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { openTemporary, removeLeftovers } from "../../archive/disk/temporary.js";
import { undiciDownloads } from "../../archive/download/download.js";
import { identityOf, type JobIndex, lineOf } from "../../archive/index-file.js";
import { type Archive, openArchive } from "../../archive/save.js";
import type { AlarmClock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { Disk } from "../../core/ports/disk.js";
import type { Log } from "../../core/ports/send.js";
import type { Run } from "../../core/ports/store.js";
import { openHandOut } from "../../fleet/hand-out.js";
import { openQueue, queueMissing } from "../../fleet/queue.js";
import { Worker } from "../../fleet/worker.js";
import { ownVersion } from "../../package-file.js";
import type { Store } from "../../store/workspace/workspace.js";
import type { Environment } from "../../text/environment.js";
import { sandboxFlag } from "../../text/shell.js";
import type { WorkspaceSession } from "../../workspace/open.js";
import { asUsage, openCopies } from "../../workspace/outputs-place.js";
import type { Workspace } from "../../workspace/workspace.js";

export interface OutputsOptions {
  opened: WorkspaceSession;
  run: Run;
  clock: AlarmClock;
  environment: Environment;
  log: Log;
  /** False: other processes do the downloads. */
  work?: boolean;
}

/** How a run saves outputs: by itself, or by all workers that share its database. */
export interface Saves extends Pick<Archive, "save"> {
  /** How many downloads others do at once. */
  offered?(): number;
  close(): Promise<void>;
}

/** The outputs of a run: where they are kept, and who downloads them. */
export interface Outputs extends Saves, Pick<Archive, "refusal"> {
  disk: Disk;
  /** The index of the job's folder. */
  index(): Promise<JobIndex>;
  /** Updates the index with the outputs that other hosts have put into the bucket that alone keeps them. */
  completeIndex(): Promise<void>;
  /** Copies the index to that bucket. If that fails, the next run copies it. */
  copyIndex(): Promise<void>;
}

/**
 * Opens the outputs, and removes partial downloads of crashed runs. `onOffer` is called when others have taken or returned
 * downloads. Throws EarlyExit if a bucket cannot be used, or if downloads are left to others and none can do them.
 */
export async function openOutputs(options: OutputsOptions, onOffer: () => void): Promise<Outputs> {
  const { opened, run, clock, log } = options;
  const folder = jobFolder(run);
  const { baseUrl, proxies = null } = opened.connection;
  const downloads = undiciDownloads({ baseUrl, proxies });
  const inspector = openInspector({ clock });
  const copies = await openCopies(run.options, options.environment);
  // The bucket that alone keeps the outputs.
  const only = run.options.archiveOnly === true ? (copies?.bucket ?? null) : null;
  const disk = only === null ? nodeDisk : bucketDisk(nodeDisk, only, folder, true);
  const archive = openArchive({
    disk,
    download: downloads.download,
    clock,
    inspect: inspector.inspect,
    version: ownVersion(),
    sidecars: run.options.sidecars ?? false,
  });
  await removeLeftovers(disk, folder).catch((error: unknown) => {
    throw asUsage(error);
  });
  const saves = await openSaves(options, disk, only?.name ?? null, archive, onOffer);
  const index = () => archive.indexOf(folder);
  return {
    disk,
    index,
    save: copies === null || only !== null ? saves.save : savingCopies(saves.save, copies.bucket),
    ...(saves.offered === undefined ? {} : { offered: saves.offered }),
    refusal: archive.refusal,
    async completeIndex() {
      if (only !== null) await addMissingLines(await index(), disk, opened.store, run);
    },
    async copyIndex() {
      if (only === null) return;
      await copyIndex(nodeDisk, only, folder).catch((error: Error) =>
        log.warn({}, `the index is not copied: ${error.message}. The next run copies it.`),
      );
    },
    async close() {
      copies?.close();
      await saves.close();
      await archive.close();
      await inspector.close();
      await downloads.close();
    },
  };
}

/**
 * Adds lines for outputs in a bucket that this host's index lacks or has under an older name, because another host may
 * have run before. If a move was interrupted, the index is right and the history is not.
 */
async function addMissingLines(index: JobIndex, disk: Disk, store: Store, run: Run): Promise<void> {
  for await (const page of store.archived(run.jobId)) {
    for (const output of page) {
      if (output.bucket == null) continue;
      const line = lineOf(output);
      const known = index.find(identityOf(line));
      const isRight =
        known?.file === line.file || (known && (await disk.size(join(jobFolder(run), known.file))) !== null);
      if (!isRight) await index.add(line);
    }
  }
}

/** Throws EarlyExit if others are to do the downloads, and none can: only a database has other workers. */
export function mustHaveWorkers({
  workspace,
  work = true,
}: { workspace: Pick<Workspace, "database"> } & Pick<OutputsOptions, "work">): void {
  if (work || workspace.database !== null) return;
  throw new EarlyExit(
    "usage",
    "--no-work needs --database-url: without it there are no other workers. Nothing was sent.",
  );
}

/** Throws EarlyExit if others are to do the downloads, and the package of their queue is missing. */
async function openSaves(
  { opened, run, clock, log, work = true }: OutputsOptions,
  disk: Disk,
  bucket: string | null,
  archive: Archive,
  onOffer: () => void,
): Promise<Saves> {
  const { database } = opened.workspace;
  const here: Saves = { save: archive.save, close: async () => undefined };
  if (database === null) return here;
  const queue = await openQueue(database, clock);
  if (queue === null) {
    if (work) return here;
    throw queueMissing();
  }
  const entry = {
    host: hostname(),
    pid: process.pid,
    version: ownVersion(),
    downloads: run.options.downloads,
  };
  const folder = jobFolder(run);
  // A name that no other run has.
  const proof = await openTemporary(
    nodeDisk,
    folder,
    `fleet ${run.id} ${entry.host} ${entry.pid} ${clock.now()}`,
  );
  const { outFolder } = run;
  const worker = work
    ? new Worker({
        queue,
        outFolder,
        disk,
        clock,
        log,
        archiveFor: () => archive,
        entry: { ...entry, does: "run" },
      })
    : null;
  await worker?.start();
  const handOut = await openHandOut({
    queue,
    archive,
    outFolder,
    clock,
    log,
    startWorker: work ? null : `bulkgen worker${sandboxFlag(run.options)}`,
    onOffer,
    bucket,
    proof: proof.path.slice(folder.length + 1),
    hasProof: async () => (await nodeDisk.size(proof.path).catch(() => null)) !== null,
    baseUrl: opened.connection.baseUrl,
  });
  return {
    save: (request, signal = new AbortController().signal) => handOut.save(request, signal),
    offered: () => handOut.offered(),
    async close() {
      await worker?.drain(AbortSignal.abort("ended"));
      await handOut.close();
      await queue.close();
      await proof.abandon();
    },
  };
}
