import { leaseSeconds } from "../../../src/fleet/boss.js";
import type { TakenJob } from "../../../src/fleet/queue.js";
import { type Effect, type Rule, type Sender, Violation } from "../watch.js";
import type { Link } from "./link.js";
import type { WorkspaceLock } from "./lock.js";

/** What happened to a fleet, and how often. */
export interface FleetCounts {
  /** Processes with the lock. */
  runsKilled: number;
  workersKilled: number;
  /** Runs that a worker went on with. */
  takeOvers: number;
  handedOut: number;
  /** Jobs that were taken again after the end of a lease. */
  redelivered: number;
  /** Completions that were refused, because the lease had ended or the job was gone. */
  refused: number;
}

export function noCounts(): FleetCounts {
  return { runsKilled: 0, workersKilled: 0, takeOvers: 0, handedOut: 0, redelivered: 0, refused: 0 };
}

/** What workers do, and whoever looks for a run to go on with, while nothing happens. */
const idle: readonly string[] = [
  "queue.take",
  "queue.beat",
  "queue.tidy",
  "queue.collect",
  "queue.complete",
  "lock.take",
];
/** Longer than any fault lasts (ms). */
const idleMs = 3_600_000;

/** How long (ms) after a trouble a lease may still be lost by it: it may have been about to be renewed. */
const excusedMs = (leaseSeconds + 6) * 1_000;

/** The promises of a fleet: who has the lock, who has a lease, and whose word counts. */
export class FleetRules implements Rule {
  /** When something was done that is more than a look into the queue. */
  private movedAt = Number.POSITIVE_INFINITY;
  private readonly leases = new Map<string, { sender: Sender; retryCount: number }>();

  constructor(
    private readonly now: () => number,
    private readonly lock: WorkspaceLock,
    private readonly linkOf: (sender: Sender) => Link | undefined,
    private readonly counts: FleetCounts,
  ) {}

  done({ sender, name, values, result }: Effect): void {
    this.checkMoves(name);
    switch (name) {
      case "queue.take":
        for (const job of result as TakenJob[]) this.take(sender, job);
        return;
      case "queue.complete":
        this.checkCompletion(sender, values[0] as TakenJob, result as boolean);
        return;
      case "store.intend":
      case "store.saved":
        this.checkLock(sender, name);
    }
  }

  /** The workers are there from now on. */
  begins(): void {
    this.movedAt = this.now();
  }

  private checkMoves(name: string): void {
    if (!idle.includes(name)) this.movedAt = this.now();
    else if (this.now() - this.movedAt > idleMs)
      throw new Violation("liveness", "workers have waited for an hour, and a run with them");
  }

  crashed(senders: readonly Sender[]): void {
    for (const sender of senders) {
      if (this.linkOf(sender)?.session === null) this.counts.workersKilled++;
      else this.counts.runsKilled++;
    }
  }

  /** A worker that is there, and was not held up, keeps what it has taken. */
  private take(sender: Sender, { id, retryCount }: TakenJob): void {
    const before = this.leases.get(id);
    this.counts.handedOut++;
    if (before !== undefined) {
      this.counts.redelivered++;
      const link = this.linkOf(before.sender);
      const isExcused = link === undefined || this.now() - link.troubleAt < excusedMs;
      if (before.sender.isAlive() && !isExcused)
        throw new Violation("lease", `${id} was given to another worker, though its own was at work on it`);
    }
    this.leases.set(id, { sender, retryCount });
  }

  /** Whoever has lost its lease is not believed. */
  private checkCompletion(sender: Sender, { id }: TakenJob, isHeard: boolean): void {
    if (!isHeard) {
      this.counts.refused++;
      return;
    }
    if (this.leases.get(id)?.sender !== sender)
      throw new Violation("lease", `a worker was believed about ${id}, which another one has`);
  }

  /** Nothing is bought, and nothing is written down as archived, without the lock. */
  private checkLock(sender: Sender, name: string): void {
    if (!this.lock.isHeldBy(sender))
      throw new Violation("lock", `${name} by a process that does not have the lock`);
  }
}
