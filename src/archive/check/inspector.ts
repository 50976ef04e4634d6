import { Worker } from "node:worker_threads";
import type { Clock } from "../../clock.js";
import { packageFile } from "../../package-file.js";
import { nodeDisk } from "../disk/node-disk.js";
import { inspectSmallPicture, type MediaContent, smallBytes } from "./content.js";
import type { InspectorAnswer, InspectorJob } from "./inspector-worker.js";

/**
 * Files are checked in worker threads, because a broken or hostile file may keep a decoder busy forever or fill the
 * memory. Such a thread is terminated, and then only the file's type is checked: a file that cannot be read in time may
 * still be what was paid for. If a thread dies in another way, its file is refused. A small picture is checked without a
 * thread, which would cost more than the check. Node cannot start a thread from TypeScript, so the compiled worker is
 * used even when this file runs from source.
 */
const workerFile = packageFile("dist/archive/check/inspector-worker.js");

const threadsMax = 2;
/** The heap of a thread; pictures are decoded outside of it, in strips. */
const heapMebibytesMax = 512;

export interface InspectorSettings {
  clock: Clock;
  /** The time for one file: these milliseconds, plus the time to read its bytes at the lowest speed. */
  msMax?: number;
  bytesPerSecondMin?: number;
  /** For tests. */
  worker?: string;
}

export interface Inspector {
  /** Checks a file of this machine. Rejects with errors of the disk. */
  inspect(path: string, category: string, bytes: number): Promise<MediaContent>;
  close(): Promise<void>;
}

interface Waiting extends InspectorJob {
  bytes: number;
  resolve(content: MediaContent): void;
  reject(error: Error): void;
}

/** Threads start with the first file and do not keep the process alive. */
export function openInspector(settings: InspectorSettings): Inspector {
  const pool = new Pool(settings);
  return {
    async inspect(path, category, bytes) {
      const isSmall = category === "image" && bytes <= smallBytes;
      const content = isSmall ? await withoutThread(path, bytes, settings) : null;
      if (content !== null) return content;
      return new Promise((resolve, reject) => pool.add({ path, category, bytes, resolve, reject }));
    },
    close: () => pool.close(),
  };
}

/** The content of a small picture; null if it needs a thread after all, or takes unexpectedly long. */
async function withoutThread(
  path: string,
  bytes: number,
  settings: InspectorSettings,
): Promise<MediaContent | null> {
  const over = new AbortController();
  const late = settings.clock.sleep(patienceMs(bytes, settings), over.signal).then(() => null);
  try {
    return await Promise.race([inspectSmallPicture(nodeDisk, path, bytes), late]);
  } finally {
    // Given a reason, abort does not create an error with a stack.
    over.abort("ended");
  }
}

function patienceMs(
  bytes: number,
  { msMax = 30_000, bytesPerSecondMin = 4 * 2 ** 20 }: InspectorSettings,
): number {
  return Math.ceil(msMax + (bytes / bytesPerSecondMin) * 1000);
}

class Pool {
  private readonly idle: Worker[] = [];
  private readonly busy = new Map<Worker, { job: Waiting; over: AbortController }>();
  private readonly queue: Waiting[] = [];

  constructor(private readonly settings: InspectorSettings) {}

  add(job: Waiting): void {
    this.queue.push(job);
    this.dispatch();
  }

  async close(): Promise<void> {
    const all = [...this.idle.splice(0), ...this.busy.keys()];
    await Promise.all(all.map((worker) => worker.terminate()));
  }

  private dispatch(): void {
    const worker = this.idle.pop() ?? (this.isShort() ? this.start() : undefined);
    const job = worker === undefined ? undefined : this.queue.shift();
    if (worker === undefined) return;
    if (job === undefined) this.idle.push(worker);
    else this.work(worker, job);
  }

  /** Starting a thread takes longer than checking most files, so another starts only when more files wait. */
  private isShort(): boolean {
    return this.busy.size < threadsMax && this.queue.length > this.busy.size;
  }

  private start(): Worker {
    const worker = new Worker(this.settings.worker ?? workerFile, {
      resourceLimits: { maxOldGenerationSizeMb: heapMebibytesMax },
    });
    worker.on("message", (answer: InspectorAnswer) => {
      const job = this.finish(worker);
      this.idle.push(worker);
      if (job !== undefined) tell(job, answer);
      this.dispatch();
    });
    // A thread that dies affects only its own file.
    worker.on("error", (error: NodeJS.ErrnoException) => {
      const outgrown = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      this.lose(
        worker,
        `the check failed: ${error.message}`,
        outgrown ? "the check took too much memory" : null,
      );
    });
    worker.on("exit", () => this.lose(worker, "the check ended its thread", null));
    return worker;
  }

  private work(worker: Worker, job: Waiting): void {
    const over = new AbortController();
    this.busy.set(worker, { job, over });
    worker.ref();
    const { path, category, typeBecause } = job;
    worker.postMessage({
      path,
      category,
      ...(typeBecause === undefined ? {} : { typeBecause }),
    } satisfies InspectorJob);
    const ms = patienceMs(job.bytes, this.settings);
    void this.settings.clock.sleep(ms, over.signal).then(() => {
      const reason = `the check took longer than ${Math.round(ms / 1000)} s`;
      if (!over.signal.aborted) this.lose(worker, reason, reason);
    });
  }

  private finish(worker: Worker): Waiting | undefined {
    const found = this.busy.get(worker);
    this.busy.delete(worker);
    // Given a reason, abort does not create an error with a stack.
    found?.over.abort("ended");
    worker.unref();
    return found?.job;
  }

  /** With `typeBecause`, the file is checked again, for its type alone. */
  private lose(worker: Worker, reason: string, typeBecause: string | null): void {
    const job = this.finish(worker);
    const at = this.idle.indexOf(worker);
    if (at >= 0) this.idle.splice(at, 1);
    if (job === undefined) return;
    void worker.terminate();
    if (typeBecause !== null && job.typeBecause === undefined) this.queue.unshift({ ...job, typeBecause });
    else job.resolve({ kind: "bad", reason });
    this.dispatch();
  }
}

function tell({ resolve, reject }: Waiting, answer: InspectorAnswer): void {
  if ("content" in answer) resolve(answer.content);
  else reject(Object.assign(new Error(answer.message), answer.code === null ? {} : { code: answer.code }));
}
