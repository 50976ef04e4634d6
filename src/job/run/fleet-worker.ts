import { hostname } from "node:os";
import { openInspector } from "../../archive/check/inspector.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { undiciDownloads } from "../../archive/download/download.js";
import { type Archive, openArchive } from "../../archive/save.js";
import type { Bucket } from "../../bucket/bucket.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { Log } from "../../core/ports/send.js";
import type { Run } from "../../core/ports/store.js";
import type { SeenWorker, WorkerEntry } from "../../fleet/job.js";
import { dropQueue, openQueue, type Queue, type QueueLoad, queueMissing } from "../../fleet/queue.js";
import { Worker } from "../../fleet/worker.js";
import { ownVersion } from "../../package-file.js";
import type { DatabaseAddress } from "../../store/postgres/address.js";
import type { Environment } from "../../text/environment.js";
import { checkedProxies } from "../../workspace/connection.js";
import { lockOwnerOf } from "../../workspace/lock.js";
import { bucketNamed } from "../../workspace/outputs-place.js";
import { withStore } from "../../workspace/state.js";
import type { Workspace } from "../../workspace/workspace.js";

export interface WorkerJob {
  workspace: Workspace;
  downloads: number;
  does: Exclude<WorkerEntry["does"], "run">;
  /** How buckets are reached. */
  environment: Environment;
  clock: Clock;
  log: Log;
  /** Stops the worker: it finishes its downloads and takes no more. */
  stop: AbortSignal;
  onReady(): void;
  /** Continues a run whose process is gone. Only for a worker that stands by. */
  takeOver(run: Run): Promise<void>;
}

/** Milliseconds between two checks for a run whose process is gone. */
const watchMs = 3_000;
/** The longest pause after a run could not be continued, e.g. because the database or the service is away (ms). */
const watchMsMax = 30_000;

/** Works until it is stopped. Throws EarlyExit if it can do nothing here. */
export async function runWorker(job: WorkerJob): Promise<void> {
  const { workspace, clock, log, stop } = job;
  const proxies = checkedProxies(job.environment);
  const queue = await queueOf(workspace, clock);
  const inspector = openInspector({ clock });
  const archives = new Map<string, { archive: Archive; close(): Promise<void> }>();
  const archiveFor = (baseUrl: string): Archive => {
    let found = archives.get(baseUrl);
    if (found === undefined) {
      const downloads = undiciDownloads({ baseUrl, proxies });
      const { download } = downloads;
      const { inspect } = inspector;
      const archive = openArchive({ disk: nodeDisk, download, clock, inspect, version: ownVersion() });
      found = {
        archive,
        async close() {
          await archive.close();
          await downloads.close();
        },
      };
      archives.set(baseUrl, found);
    }
    return found.archive;
  };
  const { downloads, does } = job;
  const buckets = new Map<string, Bucket>();
  const bucketFor = (name: string): Bucket => {
    const bucket = buckets.get(name) ?? bucketNamed(name, job.environment);
    buckets.set(name, bucket);
    return bucket;
  };
  const worker = new Worker({
    queue,
    archiveFor,
    bucketFor,
    clock,
    log,
    disk: nodeDisk,
    outFolder: workspace.outFolder,
    entry: { host: hostname(), pid: process.pid, version: ownVersion(), downloads, does },
  });
  try {
    await worker.start();
    job.onReady();
    await untilStopped(job, worker);
    await worker.drain();
  } finally {
    await queue.close();
    for (const { close } of archives.values()) await close();
    await inspector.close();
  }
  if (worker.bucketRefusal !== null && !stop.aborted)
    throw new EarlyExit(
      "usage",
      `the outputs of the run are kept in a bucket that this host cannot use: ${worker.bucketRefusal}. Its downloads go to other workers. Correct that on this host and start the worker again.`,
    );
  if (worker.isElsewhere && !stop.aborted)
    throw new EarlyExit(
      "usage",
      `${workspace.outFolder} is not the output folder that the run writes to. Nothing was downloaded. Mount that folder here, and name it with --out.`,
    );
}

/** Throws EarlyExit for a workspace without a database, or without the package of the queue. */
async function queueOf(workspace: Workspace, clock: Clock): Promise<Queue> {
  const queue = await openQueue(databaseOf(workspace), clock);
  if (queue === null) throw queueMissing();
  return queue;
}

function databaseOf({ database }: Workspace): DatabaseAddress {
  if (database !== null) return database;
  throw new EarlyExit(
    "usage",
    "a fleet shares a database: set BULKGEN_DATABASE_URL to its address. `bulkgen migrate` moves a state there. Nothing was sent.",
  );
}

async function untilStopped(
  { clock, does, log, stop, takeOver, workspace }: WorkerJob,
  worker: Worker,
): Promise<void> {
  let pauseMs = watchMs;
  let logged: string | null = null;
  while (!stop.aborted && !worker.isElsewhere) {
    await clock.sleep(pauseMs, stop);
    if (stop.aborted || does === "archive") continue;
    try {
      const run = await orphanedRun(workspace, clock);
      if (run !== null) await takeOver(run);
      pauseMs = watchMs;
      logged = null;
    } catch (error) {
      // Another worker was faster.
      if (error instanceof EarlyExit && error.exit === "locked") continue;
      pauseMs = Math.min(2 * pauseMs, watchMsMax);
      // It may be the service's mistake, or about one run, and the downloads of others go on. The same reason is logged once.
      const reason = (error as Error).message;
      if (reason !== logged) log.warn({}, `no run can be continued for now: ${reason}`);
      logged = reason;
    }
  }
}

/** A run whose process ended without closing it: it is recorded as running, and nobody has the lock. */
async function orphanedRun(workspace: Workspace, clock: Clock): Promise<Run | null> {
  const running = () =>
    withStore(workspace, clock, async (store) =>
      (await store.runs()).findLast(({ state }) => state === "running"),
    );
  if ((await running()) === undefined || (await lockOwnerOf(workspace)) !== null) return null;
  // It may have been closed in between.
  return (await running()) ?? null;
}

/** The workers of a fleet, its downloads, and the process that has the workspace's lock. */
export async function fleetOf(workspace: Workspace, clock: Clock) {
  const fleet = await openFleet(workspace, clock);
  try {
    return { ...(await fleet.read()), lock: await lockOwnerOf(workspace) };
  } finally {
    await fleet.close();
  }
}

/**
 * Drops the queue and makes it again. A run and its workers notice this, and fill it again. Throws EarlyExit as
 * `fleetOf` does.
 */
export async function rebuildQueue(workspace: Workspace, clock: Clock): Promise<void> {
  await dropQueue(databaseOf(workspace));
  const queue = await queueOf(workspace, clock);
  await queue.close();
}

/** Reads a fleet as often as wanted. */
export interface FleetReader {
  read(): Promise<{ workers: SeenWorker[] } & QueueLoad>;
  close(): Promise<void>;
}

/** Throws EarlyExit for a workspace without a database, or without the package of the queue. */
export async function openFleet(workspace: Workspace, clock: Clock): Promise<FleetReader> {
  const queue = await queueOf(workspace, clock);
  return {
    read: async () => ({ workers: await queue.workers(), ...(await queue.load()) }),
    close: () => queue.close(),
  };
}
