import { Worker } from "node:worker_threads";
import PQueue from "p-queue";
import { packageFile } from "../../package-file.js";
import type { MediaJob } from "./job.js";
import { isPicture, makePicture } from "./picture.js";
import type { WorkerAnswer } from "./worker.js";

/**
 * A few worker threads that make sounds and films, so that encoding never delays answers to requests. Pictures need
 * none: sharp works on threads of its own, and a worker thread would load it once more. Threads start with
 * the first jobs and do not keep the process alive. The compiled worker is used also when this file runs from its
 * TypeScript source, because Node cannot start a thread from that.
 */
const workerFile = packageFile("dist/sandbox/studio/worker.js");

/** Hides Node's warning that WASI is experimental, printed for each voice: a user cannot act on it. */
const quiet = { execArgv: ["--disable-warning=ExperimentalWarning"] };

interface Waiting {
  job: MediaJob;
  resolve(bytes: Uint8Array): void;
  reject(error: Error): void;
}

/** Too many media are waiting to be made: the same request may succeed a little later. */
export class PoolFull extends Error {
  override readonly name = "PoolFull";

  constructor() {
    super("too many media are waiting to be made");
  }
}

export class MediaPool {
  private readonly idle: Worker[] = [];
  private readonly all = new Set<Worker>();
  private readonly busy = new Map<Worker, Waiting>();
  private readonly queue: Waiting[] = [];
  private readonly pictures: PQueue;
  private closed = false;

  constructor(
    private readonly threads: number,
    private readonly queueMax: number,
  ) {
    this.pictures = new PQueue({ concurrency: threads });
  }

  /** The bytes of a job. Rejects with the problem of its media, or with PoolFull. */
  run(job: MediaJob): Promise<Uint8Array> {
    if (this.closed) return Promise.reject(new Error("the sandbox is closing"));
    const waiting = isPicture(job.maker) ? this.pictures.size : this.queue.length;
    if (waiting >= this.queueMax) return Promise.reject(new PoolFull());
    if (isPicture(job.maker)) return this.pictures.add(() => this.picture(job));
    return new Promise((resolve, reject) => {
      this.queue.push({ job, resolve, reject });
      this.dispatch();
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const waiting of this.queue.splice(0)) waiting.reject(new Error("the sandbox is closing"));
    await Promise.all([this.pictures.onIdle(), ...[...this.all].map((worker) => worker.terminate())]);
  }

  private async picture(job: MediaJob): Promise<Uint8Array> {
    if (this.closed) throw new Error("the sandbox is closing");
    return new Uint8Array(await makePicture(job));
  }

  private dispatch(): void {
    if (this.queue.length === 0) return;
    const worker = this.idle.pop() ?? (this.isShort() ? this.start() : undefined);
    const next = worker && this.queue.shift();
    if (worker && next) this.work(worker, next);
  }

  /** Starting a thread takes time too, so another starts only if more jobs wait than there are threads. */
  private isShort(): boolean {
    return this.all.size < this.threads && this.queue.length > this.all.size;
  }

  private start(): Worker {
    const worker = new Worker(workerFile, quiet);
    this.all.add(worker);
    worker.on("message", (answer: WorkerAnswer) => {
      const waiting = this.finish(worker);
      this.idle.push(worker);
      if ("bytes" in answer) waiting?.resolve(answer.bytes);
      else waiting?.reject(new Error(answer.problem));
      this.dispatch();
    });
    // A thread that dies takes only its own job with it.
    worker.on("error", (error) => this.lose(worker, `the media worker failed: ${error.message}`));
    worker.on("exit", () => this.lose(worker, "the media worker ended"));
    return worker;
  }

  private work(worker: Worker, waiting: Waiting): void {
    this.busy.set(worker, waiting);
    worker.ref();
    worker.postMessage(waiting.job);
  }

  private finish(worker: Worker): Waiting | undefined {
    const waiting = this.busy.get(worker);
    this.busy.delete(worker);
    worker.unref();
    return waiting;
  }

  private lose(worker: Worker, reason: string): void {
    const waiting = this.finish(worker);
    this.all.delete(worker);
    const at = this.idle.indexOf(worker);
    if (at >= 0) this.idle.splice(at, 1);
    waiting?.reject(new Error(reason));
    if (!this.closed) this.dispatch();
  }
}
