import { MessageChannel } from "node:worker_threads";

interface Waiting {
  work: () => unknown;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/**
 * A commit for each request would be most of what a request costs. So the work that arrives within one turn of the
 * event loop is done in one transaction, one after the other, and no answer is sent before its commit. A message to
 * ourselves marks the turn's end: it is delivered after everything that was already waiting to be read.
 */
export class GroupCommit {
  private readonly channel = new MessageChannel();
  private waiting: Waiting[] = [];

  constructor(private readonly transact: (work: () => void) => void) {
    this.channel.port2.on("message", () => this.flush());
    this.channel.port2.unref();
  }

  /** Runs `work` inside a transaction and resolves with its result once committed. */
  run<Result>(work: () => Result): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.waiting.push({ work, resolve: resolve as (result: unknown) => void, reject });
      if (this.waiting.length > 1) return;
      this.channel.port2.ref();
      this.channel.port1.postMessage(null);
    });
  }

  /** Does what still waits. Nothing may be run afterwards. */
  close(): void {
    this.flush();
    this.channel.port1.close();
  }

  private flush(): void {
    const batch = this.waiting;
    this.waiting = [];
    this.channel.port2.unref();
    if (batch.length === 0) return;
    if (this.together(batch)) return;
    // One of them failed and undid the others, so each is done alone.
    for (const one of batch) this.alone(one);
  }

  private together(batch: readonly Waiting[]): boolean {
    const results: unknown[] = [];
    try {
      this.transact(() => {
        for (const { work } of batch) results.push(work());
      });
    } catch {
      return false;
    }
    for (const [index, { resolve }] of batch.entries()) resolve(results[index]);
    return true;
  }

  private alone({ work, resolve, reject }: Waiting): void {
    let result: unknown;
    try {
      this.transact(() => {
        result = work();
      });
    } catch (error) {
      reject(error);
      return;
    }
    resolve(result);
  }
}
