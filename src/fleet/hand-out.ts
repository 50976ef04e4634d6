import { posix, relative, sep } from "node:path";
import type { Archive, SaveRequest, SaveResult } from "../archive/save.js";
import type { Clock } from "../clock.js";
import type { Log } from "../core/ports/send.js";
import { type DownloadJob, type JobOutcome, jobVersion, type SeenWorker } from "./job.js";
import type { Queue } from "./queue.js";

/** The run's side of the fleet: puts downloads into the queue, and gives the downloaded files their names. */
export interface HandOut {
  save(request: SaveRequest, signal: AbortSignal): Promise<SaveResult>;
  /** Downloads that the live workers do at once. */
  offered(): number;
  close(): Promise<void>;
}

export interface HandOutOptions {
  queue: Queue;
  archive: Pick<Archive, "known" | "place">;
  /** Of all outputs: absolute path. */
  outFolder: string;
  /** See DownloadJob. */
  proof: string;
  bucket: string | null;
  hasProof(): Promise<boolean>;
  baseUrl: string;
  clock: Clock;
  log: Log;
  /** The command that starts a worker, for a run that downloads nothing itself; otherwise null. */
  startWorker: string | null;
  /** Called when the number of offered downloads changes. */
  onOffer(): void;
}

interface Pending {
  job: DownloadJob;
  end(outcome: JobOutcome | { kind: "failed" }): void;
}

/** The longest time (ms) between two checks of the queue: a notification may be lost with its connection. */
const checkMs = 1_000;

export async function openHandOut(options: HandOutOptions): Promise<HandOut> {
  const { queue } = options;
  // Jobs of an earlier process: nobody waits for them.
  await queue.clear();
  const handOut = new Waiting(options);
  await handOut.refresh();
  await queue.onNews("outcomes", () => handOut.wake());
  void handOut.watch();
  return handOut;
}

class Waiting implements HandOut {
  private readonly pending = new Map<string, Pending>();
  private workers: readonly SeenWorker[] = [];
  private readonly over = new AbortController();
  private nap = new AbortController();
  private watching: Promise<void> = Promise.resolve();
  private isMissed = false;

  constructor(private readonly options: HandOutOptions) {}

  async save(request: SaveRequest, signal: AbortSignal): Promise<SaveResult> {
    const { archive, log } = this.options;
    const known = await archive.known(request);
    if (known !== null) return known;
    const outcome = await this.outcomeOf(this.jobOf(request), signal);
    switch (outcome.kind) {
      case "received":
        return archive.place(request, outcome);
      case "elsewhere":
        return this.misplaced(outcome, signal);
      case "no_bucket": {
        const { host, worker, reason } = outcome;
        log.warn({}, `the worker on ${host} cannot keep files in the bucket: ${reason}`);
        await this.options.queue.sendAway(worker).catch(() => undefined);
        return { kind: "try_again", reason: `the worker on ${host} cannot use the bucket` };
      }
      case "other_version":
        log.warn({}, `the worker on ${outcome.host} has another version of bulkgen: update it`);
        return {
          kind: "try_again",
          reason: `the worker on ${outcome.host} does not understand version ${outcome.version}`,
        };
      case "failed":
        return { kind: "try_again", reason: "several workers were lost while they downloaded it" };
      default:
        return outcome;
    }
  }

  /**
   * A process that has taken over the run removes the proof of this process, whose lock is lost: then no worker is to
   * blame.
   */
  private async misplaced(
    { host, worker }: Extract<JobOutcome, { kind: "elsewhere" }>,
    signal: AbortSignal,
  ): Promise<SaveResult> {
    const { hasProof, log, outFolder, queue } = this.options;
    if (!signal.aborted && (await hasProof())) {
      log.warn({}, `the worker on ${host} does not see ${outFolder}: mount it there, and name it with --out`);
      await queue.sendAway(worker).catch(() => undefined);
    }
    return { kind: "try_again", reason: `the worker on ${host} has another output folder` };
  }

  offered(): number {
    return this.workers.reduce((sum, { downloads }) => sum + downloads, 0);
  }

  wake(): void {
    this.nap.abort();
  }

  async close(): Promise<void> {
    this.over.abort("ended");
    this.wake();
    await this.watching;
  }

  /** Watches the queue until it is closed. */
  watch(): Promise<void> {
    this.watching = this.keepWatching();
    return this.watching;
  }

  async refresh(): Promise<void> {
    const before = this.offered();
    this.workers = await this.options.queue.workers();
    if (this.offered() !== before) this.options.onOffer();
    this.missWorkers();
  }

  /** Without workers the run buys and then waits for its files, while the addresses of its outputs expire. */
  private missWorkers(): void {
    const { log, startWorker } = this.options;
    const isMissed = startWorker !== null && this.offered() === 0;
    if (isMissed && !this.isMissed)
      log.warn(
        {},
        `no worker that downloads is there, so downloads wait: \`${startWorker}\` starts one, on any host`,
      );
    this.isMissed = isMissed;
  }

  private async keepWatching(): Promise<void> {
    const { clock, log, queue } = this.options;
    let refreshedAt = clock.monotonic();
    let trouble = false;
    while (!this.over.signal.aborted) {
      this.nap = new AbortController();
      const { signal } = this.nap;
      try {
        if (this.pending.size > 0) await this.collect();
        if (clock.monotonic() - refreshedAt >= checkMs) {
          refreshedAt = clock.monotonic();
          await queue.tidy();
          await this.refresh();
        }
        if (trouble) log.info({}, "the queue of downloads can be used again");
        trouble = false;
      } catch (error) {
        // If this lasts, the run's own queries end it.
        if (!trouble)
          log.warn(
            { error: (error as Error).message },
            "waiting for the queue of downloads, which the database refuses",
          );
        trouble = true;
      }
      if (!this.over.signal.aborted) await clock.sleep(checkMs, signal);
    }
  }

  private async collect(): Promise<void> {
    const { queue } = this.options;
    const { ended, failed, lost } = await queue.collect([...this.pending.keys()]);
    for (const [id, outcome] of ended) this.take(id)?.end(outcome);
    for (const id of failed) this.take(id)?.end({ kind: "failed" });
    // The queue was dropped: nothing is lost with it.
    for (const id of lost) {
      const pending = this.pending.get(id);
      if (pending === undefined) continue;
      const again = await queue.put(pending.job);
      // It may have been interrupted in the meantime.
      if (this.take(id) === undefined) await queue.remove(again);
      else this.pending.set(again, pending);
    }
  }

  private take(id: string): Pending | undefined {
    const pending = this.pending.get(id);
    this.pending.delete(id);
    return pending;
  }

  private async outcomeOf(job: DownloadJob, signal: AbortSignal): Promise<JobOutcome | { kind: "failed" }> {
    const { queue } = this.options;
    if (signal.aborted) return interrupted;
    let id: string;
    try {
      id = await queue.put(job);
    } catch (error) {
      return { kind: "try_again", reason: `it cannot be handed out: ${(error as Error).message}` };
    }
    if (signal.aborted) {
      void queue.remove(id).catch(() => undefined);
      return interrupted;
    }
    return new Promise((resolve) => {
      const cancel = () => {
        const current = [...this.pending].find(([, { end: its }]) => its === end)?.[0];
        if (current !== undefined) {
          this.pending.delete(current);
          void queue.remove(current).catch(() => undefined);
        }
        resolve(interrupted);
      };
      const end: Pending["end"] = (outcome) => {
        signal.removeEventListener("abort", cancel);
        resolve(outcome);
      };
      signal.addEventListener("abort", cancel, { once: true });
      this.pending.set(id, { job, end });
      this.wake();
    });
  }

  private jobOf({ jobFolder, replaces: _, ...request }: SaveRequest): DownloadJob {
    const { outFolder, proof, bucket, baseUrl } = this.options;
    const folder = relative(outFolder, jobFolder).split(sep).join(posix.sep);
    return { version: jobVersion, folder, proof, bucket, baseUrl, request };
  }
}

const interrupted: JobOutcome = { kind: "try_again", reason: "interrupted" };
