import { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import workerThreads, { type Transferable, type Worker, type WorkerOptions } from "node:worker_threads";
import { packageFile } from "../../src/package-file.js";

/**
 * Starting a thread costs more than most commands do with it, because it loads the image library or the encoders. So the
 * idle threads of a command that has ended are kept, and the next command in this process gets them. A thread that is
 * ended in the middle of a job really ends. How threads are started is proven by the commands that run as processes.
 */
const idle = new Map<string, Worker[]>();
/** The name in the module will stand for the kept ones. */
const RealWorker = workerThreads.Worker;
const ownThreads = packageFile("dist/");

class KeptThread extends EventEmitter {
  private readonly worker: Worker;
  private jobs = 0;
  private hasEnded = false;
  private readonly onMessage = (answer: unknown) => {
    this.jobs--;
    this.emit("message", answer);
  };
  private readonly onError = (error: unknown) => this.emit("error", error);
  private readonly onExit = (code: unknown) => {
    this.hasEnded = true;
    this.emit("exit", code);
  };

  constructor(
    private readonly file: string,
    options: WorkerOptions,
  ) {
    super();
    this.worker = idle.get(file)?.pop() ?? new RealWorker(file, options);
    this.worker.on("message", this.onMessage).on("error", this.onError).on("exit", this.onExit);
  }

  postMessage(message: unknown, transfer?: readonly Transferable[]): void {
    this.jobs++;
    this.worker.postMessage(message, transfer);
  }

  ref(): void {
    this.worker.ref();
  }

  unref(): void {
    this.worker.unref();
  }

  async terminate(): Promise<void> {
    if (this.hasEnded) return;
    if (this.jobs > 0) {
      await this.worker.terminate();
      return;
    }
    this.worker.off("message", this.onMessage).off("error", this.onError).off("exit", this.onExit);
    const kept = idle.get(this.file) ?? [];
    idle.set(this.file, [...kept, this.worker]);
    this.onExit(1);
  }
}

/** Has every thread of bulkgen that is started from here on kept. Other threads are as usual. */
export function keepThreads(): void {
  const construct = (_: typeof RealWorker, [file, options]: [string | URL, WorkerOptions]) =>
    String(file).startsWith(ownThreads)
      ? new KeptThread(String(file), options)
      : new RealWorker(file, options);
  workerThreads.Worker = new Proxy(RealWorker, { construct });
  syncBuiltinESMExports();
}
