import { join, posix } from "node:path";
import { dropFromBucket, handToBucket } from "../archive/copies.js";
import { indexName } from "../archive/index-file.js";
import { type Archive, dropReceived, type ReceivedFile, type Reception } from "../archive/save.js";
import { type Bucket, BucketError } from "../bucket/bucket.js";
import type { Clock } from "../clock.js";
import type { Disk } from "../core/ports/disk.js";
import type { Log } from "../core/ports/send.js";
import { type JobOutcome, jobVersion, type WorkerEntry } from "./job.js";
import type { Queue, TakenJob } from "./queue.js";

export interface WorkerOptions {
  queue: Queue;
  /** Of all outputs, on this host: absolute path. */
  outFolder: string;
  /** What downloads from the service at this address. */
  archiveFor(baseUrl: string): Pick<Archive, "receive">;
  /**
   * How this host reaches the bucket of a run without a shared folder: throws BucketError. Absent in the run itself,
   * which uploads from its own folder.
   */
  bucketFor?(name: string): Bucket;
  disk: Disk;
  clock: Clock;
  log: Log;
  entry: Omit<WorkerEntry, "busy" | "done">;
}

/** Milliseconds between two renewals of leases, and between two checks of an empty queue. */
const renewMs = 3_000;
const checkMs = 1_000;

/** A process's part of the fleet: takes jobs from the queue and carries them out. */
export class Worker {
  /** The host does not see the run's output folder, or cannot use its bucket, so the worker can do nothing. */
  isElsewhere = false;
  /** Why this host cannot use the bucket. */
  bucketRefusal: string | null = null;
  private done = 0;
  private readonly active = new Map<TakenJob, AbortController>();
  private readonly drained = new AbortController();
  private readonly over = new AbortController();
  private nap = new AbortController();
  private loops: Promise<unknown> = Promise.resolve();
  private readonly name: string;

  constructor(private readonly options: WorkerOptions) {
    const { entry, clock } = options;
    this.name = `${entry.host} ${entry.pid} ${Math.round(clock.now())} ${entry.does}`;
  }

  async start(): Promise<void> {
    const { queue } = this.options;
    await this.beat();
    await queue.onNews("jobs", () => this.nap.abort());
    this.loops = Promise.all([this.takeJobs(), this.stayAlive()]);
  }

  get busy(): number {
    return this.active.size;
  }

  /** Takes no more jobs; resolves when those in progress are done, or `cut` ends them. */
  async drain(cut?: AbortSignal): Promise<void> {
    const { queue } = this.options;
    const end = () => {
      for (const lease of this.active.values()) lease.abort("ended");
    };
    if (cut?.aborted) end();
    cut?.addEventListener("abort", end, { once: true });
    this.drained.abort("ended");
    this.nap.abort();
    await this.beat().catch(() => undefined);
    await this.loops;
    await queue.leave(this.name).catch(() => undefined);
  }

  private async beat(): Promise<void> {
    const { entry, queue } = this.options;
    const downloads = this.drained.signal.aborted ? 0 : entry.downloads;
    if (!(await queue.beat(this.name, { ...entry, downloads, busy: this.active.size, done: this.done })))
      return;
    this.isElsewhere = true;
    this.drained.abort("of no use");
    this.nap.abort();
  }

  private async takeJobs(): Promise<void> {
    const { clock, entry, log, queue } = this.options;
    const running = new Set<Promise<void>>();
    let isRefused = false;
    while (!this.drained.signal.aborted) {
      this.nap = new AbortController();
      const { signal } = this.nap;
      const free = entry.downloads - this.active.size;
      let taken: TakenJob[] = [];
      try {
        if (free > 0) {
          taken = await queue.take(free);
          if (isRefused) log.info({}, "downloads can be taken again");
          isRefused = false;
        }
      } catch (error) {
        // A run reports it itself.
        if (!isRefused && entry.does !== "run")
          log.warn(
            { error: (error as Error).message },
            "waiting for the database: no downloads can be taken",
          );
        isRefused = true;
      }
      for (const job of taken) {
        const lease = new AbortController();
        this.active.set(job, lease);
        const work = this.carryOut(job, lease.signal)
          .catch((error: unknown) =>
            log.warn({ error: (error as Error).message }, "a download ended unexpectedly"),
          )
          .finally(() => {
            this.active.delete(job);
            running.delete(work);
            this.nap.abort();
          });
        running.add(work);
      }
      if (taken.length === 0 && !this.drained.signal.aborted) await clock.sleep(checkMs, signal);
    }
    await Promise.all(running);
    this.over.abort("ended");
  }

  /** Renews the leases, and says that the worker is there. */
  private async stayAlive(): Promise<void> {
    const { clock, queue } = this.options;
    while (!this.over.signal.aborted) {
      await clock.sleep(renewMs, this.over.signal);
      if (this.over.signal.aborted) return;
      const renewals = [...this.active].map(async ([job, lease]) => {
        // Another worker has the job by now, or nobody waits for it.
        if (!(await queue.renew(job))) lease.abort("the lease has ended");
      });
      await Promise.all([this.beat(), queue.tidy(), ...renewals]).catch(() => undefined);
    }
  }

  private async carryOut(job: TakenJob, signal: AbortSignal): Promise<void> {
    const { clock, log, queue } = this.options;
    const outcome = await this.outcomeOf(job, signal);
    if (!signal.aborted && (await queue.complete(job, outcome).catch(() => false))) {
      if (outcome.kind === "received") this.done++;
      // The run that waits for it will decide whether this worker is usable; until then the worker takes fewer jobs.
      if (["elsewhere", "no_bucket", "disk"].includes(outcome.kind))
        await clock.sleep(2 * renewMs, this.drained.signal);
      return;
    }
    if (outcome.kind === "received") await this.drop(job, outcome);
    log.debug({ job: job.id }, "the lease of a job has ended: another worker has it");
  }

  private async drop({ data }: TakenJob, received: ReceivedFile): Promise<void> {
    const { bucketFor, disk, outFolder } = this.options;
    const jobFolder = join(outFolder, data.folder);
    if (data.bucket === null || bucketFor === undefined) await dropReceived(disk, jobFolder, received);
    else await dropFromBucket(bucketFor(data.bucket), jobFolder, received);
  }

  private async outcomeOf(job: TakenJob, signal: AbortSignal): Promise<JobOutcome | Reception> {
    const { archiveFor, bucketFor, disk, entry, outFolder } = this.options;
    const { data } = job;
    const { host } = entry;
    if (data.version !== jobVersion) return { kind: "other_version", host, version: data.version };
    const { folder, proof, bucket, request, baseUrl } = data;
    const elsewhere = { kind: "elsewhere", host, worker: this.name } as const;
    // A job comes out of a database: it must not lead out of the folder.
    if (posix.isAbsolute(folder) || posix.normalize(`${folder}/`).startsWith("../")) return elsewhere;
    const jobFolder = join(outFolder, folder);
    const receive = () => archiveFor(baseUrl).receive({ ...request, jobFolder }, signal);
    if (bucket !== null && bucketFor !== undefined)
      return this.throughBucket(job, () => bucketFor(bucket), jobFolder, receive);
    if ((await disk.size(join(jobFolder, proof)).catch(() => null)) === null) return elsewhere;
    return receive();
  }

  /** Downloads to this host's disk, and leaves the file in the bucket. */
  private async throughBucket(
    { id, retryCount }: TakenJob,
    openBucket: () => Bucket,
    jobFolder: string,
    receive: () => Promise<Reception>,
  ): Promise<JobOutcome> {
    const { disk, entry } = this.options;
    try {
      const bucket = openBucket();
      // Without the bucket the download would be in vain.
      await bucket.find(indexName);
      const received = await receive();
      // The disk is this host's alone.
      if (received.kind === "disk") return { ...received, reason: `${received.reason} on ${entry.host}` };
      if (received.kind !== "received") return received;
      return await handToBucket({ disk, bucket, jobFolder, lease: `${id} ${retryCount}` }, received);
    } catch (error) {
      if (!(error instanceof BucketError)) throw error;
      if (!error.isForGood) return { kind: "disk", code: "BUCKET", reason: error.message };
      this.bucketRefusal = error.message;
      return { kind: "no_bucket", host: entry.host, worker: this.name, reason: error.message };
    }
  }
}
