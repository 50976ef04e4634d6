import { leaseSeconds, leasesMax } from "../../../src/fleet/boss.js";
import type { JobOutcome, SeenWorker, WorkerEntry } from "../../../src/fleet/job.js";
import { type Queue, type QueueLoad, type TakenJob, workerSeconds } from "../../../src/fleet/queue.js";

interface QueuedJob extends TakenJob {
  state: "created" | "retry" | "active" | "completed" | "failed";
  /** It was taken at least once. */
  wasTaken: boolean;
  createdAt: number;
  renewedAt: number;
  outcome: JobOutcome | null;
}

interface KnownWorker extends SeenWorker {
  seenAt: number;
  isSentAway: boolean;
}

interface Listener {
  of: "jobs" | "outcomes";
  ring(): void;
}

/** A job is looked at for the end of its lease no more often than this (ms), as by pg-boss. */
const superviseMs = 1_000;

/**
 * In place of pg-boss and its tables: the same answers to the same calls, which `test/fleet/queue.test.ts` compares on a
 * real PostgreSQL. All connections use the same one.
 */
export class SimulatedQueue {
  private jobs = new Map<string, QueuedJob>();
  private workers = new Map<string, KnownWorker>();
  private supervisedAt = Number.NEGATIVE_INFINITY;
  private count = 0;
  private readonly listeners = new Set<Listener>();

  constructor(private readonly now: () => number) {}

  /** The schema is dropped; the next call makes it anew. */
  drop(): void {
    this.jobs = new Map();
    this.workers = new Map();
    this.supervisedAt = Number.NEGATIVE_INFINITY;
  }

  /** The queue as one connection sees it. */
  connect(): Queue {
    const own: Listener[] = [];
    return {
      put: async (data) => {
        const id = `job-${++this.count}`;
        const copy = structuredClone(data);
        const times = { createdAt: this.now(), renewedAt: 0 };
        this.jobs.set(id, {
          id,
          retryCount: 0,
          data: copy,
          state: "created",
          wasTaken: false,
          ...times,
          outcome: null,
        });
        this.ring("jobs");
        return id;
      },
      take: async (count) => {
        const open = [...this.jobs.values()].filter(({ state }) => state === "created" || state === "retry");
        return open.slice(0, count).map((job) => this.begin(job));
      },
      renew: async (lease) => {
        const job = this.leased(lease);
        if (job !== null) job.renewedAt = this.now();
        return job !== null;
      },
      complete: async (lease, outcome) => {
        const job = this.leased(lease);
        this.ring("outcomes");
        if (job === null) return false;
        job.state = "completed";
        job.outcome = structuredClone(outcome);
        return true;
      },
      collect: async (ids) => {
        const found = ids.flatMap((id) => this.jobs.get(id) ?? []);
        const over = found.filter(({ state }) => state === "completed" || state === "failed");
        for (const { id } of over) this.jobs.delete(id);
        return {
          ended: new Map(
            over.flatMap(({ id, outcome }) => (outcome === null ? [] : [[id, outcome] as const])),
          ),
          failed: over.filter(({ state }) => state === "failed").map(({ id }) => id),
          lost: ids.filter((id) => !found.some((job) => job.id === id)),
        };
      },
      remove: async (id) => void this.jobs.delete(id),
      clear: async () => this.jobs.clear(),
      tidy: async () => this.supervise(),
      beat: async (name, entry) => this.beat(name, entry),
      sendAway: async (name) => {
        const worker = this.workers.get(name);
        if (worker !== undefined) worker.isSentAway = true;
      },
      leave: async (name) => void this.workers.delete(name),
      workers: async () => {
        const since = this.now() - workerSeconds * 1_000;
        const there = [...this.workers.values()].filter(({ seenAt }) => seenAt > since);
        return there.map(({ seenAt: _, isSentAway: __, ...seen }) => structuredClone(seen));
      },
      load: async () => this.load(),
      onNews: async (of, ring) => {
        const listener = { of, ring };
        own.push(listener);
        this.listeners.add(listener);
      },
      close: async () => {
        for (const listener of own) this.listeners.delete(listener);
      },
    };
  }

  private begin(job: QueuedJob): TakenJob {
    if (job.wasTaken) job.retryCount++;
    job.wasTaken = true;
    job.state = "active";
    job.renewedAt = this.now();
    return { id: job.id, retryCount: job.retryCount, data: structuredClone(job.data) };
  }

  /** The job, if this lease of it is the current one. */
  private leased({ id, retryCount }: TakenJob): QueuedJob | null {
    const job = this.jobs.get(id);
    return job?.state === "active" && job.retryCount === retryCount ? job : null;
  }

  private supervise(): void {
    const now = this.now();
    if (now - this.supervisedAt < superviseMs) return;
    this.supervisedAt = now;
    for (const job of this.jobs.values()) {
      if (job.state !== "active" || job.renewedAt + leaseSeconds * 1_000 >= now) continue;
      job.state = job.retryCount < leasesMax ? "retry" : "failed";
    }
  }

  private beat(name: string, entry: WorkerEntry): boolean {
    const known = this.workers.get(name);
    const { startedAt = this.now(), isSentAway = false } = known ?? {};
    this.workers.set(name, { ...structuredClone(entry), startedAt, seenAt: this.now(), isSentAway });
    return isSentAway;
  }

  private load(): QueueLoad {
    const jobs = [...this.jobs.values()];
    const waiting = jobs.filter(({ state }) => state === "created" || state === "retry");
    const [first] = waiting;
    return {
      waiting: waiting.length,
      longestWaitMs: first === undefined ? null : this.now() - first.createdAt,
      active: jobs.filter(({ state }) => state === "active").length,
    };
  }

  private ring(news: Listener["of"]): void {
    for (const { of, ring } of this.listeners) if (of === news) ring();
  }
}
