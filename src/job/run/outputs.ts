import { join } from "node:path";
import { openInspector } from "../../archive/check/inspector.js";
import { copyIndex, savingCopies } from "../../archive/copies.js";
import { bucketDisk } from "../../archive/disk/bucket-disk.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { removeLeftovers } from "../../archive/disk/temporary.js";
import { undiciDownloads } from "../../archive/download/download.js";
import { identityOf, type JobIndex } from "../../archive/index-file.js";
import { type Archive, openArchive } from "../../archive/save.js";
import type { AlarmClock } from "../../clock.js";
import type { Disk } from "../../core/ports/disk.js";
import type { Log } from "../../core/ports/send.js";
import type { Run, Store } from "../../core/ports/store.js";
import { ownVersion } from "../../package-file.js";
import type { Environment } from "../../text/environment.js";
import { lineOf } from "../workspace/index-line.js";
import type { WorkspaceSession } from "../workspace/open.js";
import { asUsage } from "../workspace/outputs-place.js";
import { openCopies } from "./copies.js";
import { openSaves, type Saves } from "./saves.js";

export interface OutputsOptions {
  opened: WorkspaceSession;
  run: Run;
  clock: AlarmClock;
  environment: Environment;
  log: Log;
  /** False: other processes do the downloads. */
  work?: boolean;
}

/** The outputs of a run: where they are kept, and who downloads them. */
export interface Outputs extends Pick<Saves, "save" | "offered">, Pick<Archive, "refusal"> {
  disk: Disk;
  /** The index of the job's folder. */
  index(): Promise<JobIndex>;
  /** Brings the index up to what other hosts have put into the bucket that alone keeps the outputs. */
  completeIndex(): Promise<void>;
  /** Copies the index to that bucket. Where it cannot be, the next run does. */
  copyIndex(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens them, and removes what crashed runs left of downloads. `onOffer` is called when others have taken or returned
 * downloads. Throws EarlyExit for a bucket that cannot be used, or where downloads are left to others and none can do them.
 */
export async function openOutputs(options: OutputsOptions, onOffer: () => void): Promise<Outputs> {
  const { opened, run, clock, log } = options;
  const folder = jobFolder(run);
  const downloads = undiciDownloads({ baseUrl: opened.connection.baseUrl });
  const inspector = openInspector({ clock });
  const copies = await openCopies(run.options, options.environment);
  // Then the bucket alone keeps the outputs.
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
  const saves = await openSaves({ ...options, disk, bucket: only?.name ?? null }, archive, onOffer);
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
 * Adds the lines that this host's index lacks of outputs in a bucket, or has of an older name: another host may have run
 * before. Where a move was cut short, the index is right and the history is not.
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
