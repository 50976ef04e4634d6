import { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import workerThreads, { type Transferable, type Worker, type WorkerOptions } from "node:worker_threads";
import { packageFile } from "../../src/package-file.js";

/**
 * Starting a thread costs more than most commands do with it, because it loads the image library or the encoders. So all
 * commands in this process share a few, for each file that threads are started with: a job is given to one that is idle,
 * or waits. A thread that is ended in the middle of a job really ends. How threads are started is proven by the commands
 * that run as processes.
 */
const sharedMax = 2;

/** The name in the module will stand for the shared ones. */
const RealWorker = workerThreads.Worker;
const ownThreads = packageFile("dist/");

interface Job {
  of: SharedThread;
  message: unknown;
  transfer: readonly Transferable[] | undefined;
}

/** The threads of one file. */
class Crew {
  private readonly idle: Worker[] = [];
  private readonly busy = new Map<Worker, Job>();
  private waiting: Job[] = [];

  constructor(
    private readonly file: string,
    private readonly options: WorkerOptions,
  ) {}

  add(job: Job): void {
    this.waiting.push(job);
    this.dispatch();
  }

  /** Forgets the waiting jobs of a thread, and ends the one that works for it. */
  async leave(thread: SharedThread): Promise<void> {
    this.waiting = this.waiting.filter(({ of }) => of !== thread);
    const own = [...this.busy].filter(([, { of }]) => of === thread);
    await Promise.all(own.map(([worker]) => worker.terminate()));
  }

  private dispatch(): void {
    const worker = this.idle.pop() ?? (this.busy.size < sharedMax ? this.start() : undefined);
    if (worker === undefined) return;
    const job = this.waiting.shift();
    if (job === undefined) {
      this.idle.push(worker);
      return;
    }
    this.busy.set(worker, job);
    worker.postMessage(job.message, job.transfer);
  }

  private start(): Worker {
    const worker = new RealWorker(this.file, this.options);
    worker.unref();
    worker.on("message", (answer: unknown) => {
      const job = this.busy.get(worker);
      this.busy.delete(worker);
      this.idle.push(worker);
      job?.of.emit("message", answer);
      this.dispatch();
    });
    worker.on("error", (error) => this.busy.get(worker)?.of.emit("error", error));
    worker.on("exit", (code) => {
      const job = this.busy.get(worker);
      this.busy.delete(worker);
      if (this.idle.includes(worker)) this.idle.splice(this.idle.indexOf(worker), 1);
      job?.of.exit(code);
      if (this.waiting.length > 0) this.dispatch();
    });
    return worker;
  }
}

const crews = new Map<string, Crew>();

function crewOf(file: string, options: WorkerOptions): Crew {
  const crew = crews.get(file) ?? new Crew(file, options);
  crews.set(file, crew);
  return crew;
}

/** What a command takes for a thread of its own. */
class SharedThread extends EventEmitter {
  private readonly crew: Crew;
  private hasEnded = false;

  constructor(file: string, options: WorkerOptions) {
    super();
    this.crew = crewOf(file, options);
  }

  postMessage(message: unknown, transfer?: readonly Transferable[]): void {
    this.crew.add({ of: this, message, transfer });
  }

  /** Shared threads keep no process alive: that of the tests lives on without them. */
  ref(): void {}

  unref(): void {}

  async terminate(): Promise<void> {
    if (this.hasEnded) return;
    await this.crew.leave(this);
    this.exit(1);
  }

  exit(code: number): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.emit("exit", code);
  }
}

/** Has every thread of bulkgen that is started from here on shared. Other threads are as usual. */
export function shareThreads(): void {
  const construct = (_: typeof RealWorker, [file, options]: [string | URL, WorkerOptions]) =>
    String(file).startsWith(ownThreads)
      ? new SharedThread(String(file), options)
      : new RealWorker(file, options);
  workerThreads.Worker = new Proxy(RealWorker, { construct });
  syncBuiltinESMExports();
}
