import { hostname } from "node:os";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { openTemporary } from "../../archive/disk/temporary.js";
import type { Archive } from "../../archive/save.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { Disk } from "../../core/ports/disk.js";
import type { Log } from "../../core/ports/send.js";
import type { Run } from "../../core/ports/store.js";
import { openHandOut } from "../../fleet/hand-out.js";
import { openQueue, queueMissing } from "../../fleet/queue.js";
import { Worker } from "../../fleet/worker.js";
import { ownVersion } from "../../package-file.js";
import type { WorkspaceSession } from "../workspace/open.js";

/** How a run saves outputs: by itself, or by all workers that share its database. */
export interface Saves extends Pick<Archive, "save"> {
  offered?(): number;
  close(): Promise<void>;
}

export interface SavesOptions {
  opened: Pick<WorkspaceSession, "workspace" | "connection">;
  run: Run;
  clock: Clock;
  log: Log;
  /** False: other processes do the downloads. */
  work?: boolean;
  /** The archive's: with the bucket, where that alone keeps the outputs. */
  disk: Disk;
  bucket: string | null;
}

/** Throws EarlyExit where the downloads are to be done by others, and none can. */
export async function openSaves(
  { opened, run, clock, log, disk, bucket, work = true }: SavesOptions,
  archive: Archive,
  onOffer: () => void,
): Promise<Saves> {
  const { database } = opened.workspace;
  const here: Saves = { save: archive.save, close: async () => undefined };
  if (database === null) {
    if (work) return here;
    throw new EarlyExit(
      "usage",
      "--no-work needs --database-url: without it there are no other workers. Nothing was sent.",
    );
  }
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
    startWorker: work ? null : `bulkgen worker${run.options.sandbox ? " --sandbox" : ""}`,
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
