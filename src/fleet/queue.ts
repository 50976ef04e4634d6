import type { Client } from "pg";
import type { Clock } from "../clock.js";
import { EarlyExit } from "../core/exit.js";
import { nextTurn } from "../store/open.js";
import type { DatabaseAddress } from "../store/postgres/address.js";
import { connected, endClient, ended } from "../store/postgres/connection.js";
import { explained, isMissing } from "../store/postgres/trouble.js";
import { begun, name, RenewedBoss } from "./boss.js";
import type { DownloadJob, JobOutcome, SeenWorker, WorkerEntry } from "./job.js";

/**
 * The queue of downloads: pg-boss, in its own schema beside the workspace's. The queue is disposable: if it is dropped,
 * it is made again, and those who wait for a job put it in again. A job that is taken has a lease, which its worker
 * renews. When the lease ends, another worker gets the job, and the first worker's result is refused.
 */
export interface Queue {
  /** Puts a job in and returns its id. */
  put(job: DownloadJob): Promise<string>;
  /** Takes up to `count` jobs. */
  take(count: number): Promise<TakenJob[]>;
  /** Renews the lease; false when it has ended. */
  renew(job: TakenJob): Promise<boolean>;
  /** False if the lease has ended, so the outcome is ignored. */
  complete(job: TakenJob, outcome: JobOutcome): Promise<boolean>;
  /** The outcomes of these jobs. Jobs that have ended are removed. */
  collect(ids: readonly string[]): Promise<Collected>;
  remove(id: string): Promise<void>;
  /** Removes all jobs. */
  clear(): Promise<void>;
  /** Gives jobs whose lease has ended to others. */
  tidy(): Promise<void>;
  /**
   * Reports that a worker is there; repeat this within `workerSeconds`. Returns true if the worker was asked to leave.
   */
  beat(name: string, entry: WorkerEntry): Promise<boolean>;
  /** Tells a worker to leave, because it cannot work for this run. */
  sendAway(name: string): Promise<void>;
  leave(name: string): Promise<void>;
  workers(): Promise<SeenWorker[]>;
  load(): Promise<QueueLoad>;
  /** Calls back when jobs were put in or have ended. Polling also finds them, later. */
  onNews(of: News, ring: () => void): Promise<void>;
  close(): Promise<void>;
}

type News = "jobs" | "outcomes";

export interface TakenJob {
  id: string;
  /** How often it was taken before: together with the id it names the lease. */
  retryCount: number;
  data: DownloadJob;
}

export interface Collected {
  ended: Map<string, JobOutcome>;
  /** Given to so many workers that no other is tried. */
  failed: string[];
  /** Not in the queue: it was dropped. */
  lost: string[];
}

/** Downloads in the queue. */
export interface QueueLoad {
  /** Nobody has taken them yet. */
  waiting: number;
  /** Milliseconds that the first of these has waited; null if there is none. */
  longestWaitMs: number | null;
  active: number;
}

/** A worker that says nothing for this long does not count. */
export const workerSeconds = 10;
/** Null if the package pg-boss is not installed. Rejects with DatabaseTrouble, or PostgreSQL's error. */
export async function openQueue(address: DatabaseAddress, clock: Clock): Promise<Queue | null> {
  const library = await import("pg-boss").catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  if (library === null) return null;
  const schema = schemaOf(address);
  const news = newsOf(address, schema);
  const boss = new RenewedBoss(() => begun(library, address, schema), news.hear);
  await boss.opened().catch((error: unknown) => {
    throw explained(error, address);
  });
  return {
    ...jobsOn(boss, schema),
    ...workersOn(boss, schema),
    load: () => loadOf(boss, schema),
    async onNews(of, ring) {
      news.listeners.push({ of, ring });
      await news.hear();
    },
    close: () => ended(Promise.all([news.close(), boss.close()]), clock),
  };
}

function jobsOn(
  boss: RenewedBoss,
  schema: string,
): Pick<Queue, "put" | "take" | "renew" | "complete" | "collect" | "remove" | "clear" | "tidy"> {
  const tell = (news: News) => boss.ask("SELECT pg_notify($1, $2)", [schema, news]);
  const put = inOneGo(async (jobs: DownloadJob[]) => {
    // The ids that an insert returns need not be in the order of its jobs.
    const ids = await boss.ask("SELECT gen_random_uuid() AS id FROM generate_series(1, $1)", [jobs.length]);
    const all = jobs.map((data, index) => ({ id: String(ids[index]?.["id"]), data }));
    await boss.with((one) => one.insert(name, all));
    await tell("jobs");
    return all.map(({ id }) => id);
  });
  const tellOutcomes = inOneGo(async (outcomes: null[]) => {
    await tell("outcomes");
    return outcomes;
  });
  const leaseOf = ({ id, retryCount }: TakenJob) => ({ id, retryCount });
  return {
    put,
    take: async (count) => {
      const jobs = await boss.with((one) =>
        one.fetch<DownloadJob>(name, { batchSize: count, includeMetadata: true }),
      );
      return jobs.map(({ id, retryCount, data }) => ({ id, retryCount, data }));
    },
    renew: async (job) => affected(await boss.with((one) => one.touch(name, leaseOf(job)))),
    async complete(job, outcome) {
      const isHeard = affected(await boss.with((one) => one.complete(name, leaseOf(job), outcome)));
      await tellOutcomes(null);
      return isHeard;
    },
    async collect(ids) {
      const rows = await boss.ask(
        `WITH ended AS (
           DELETE FROM ${schema}.job WHERE name = $1 AND id = ANY($2::uuid[]) AND state IN ('completed', 'failed', 'cancelled')
           RETURNING id, state, output)
         SELECT id, state::text, output FROM ended
         UNION ALL
         SELECT id, 'open', NULL FROM ${schema}.job WHERE name = $1 AND id = ANY($2::uuid[]) AND state IN ('created', 'retry', 'active')`,
        [name, ids],
      );
      const found = new Map(rows.map((row) => [String(row["id"]), row]));
      const ended = new Map<string, JobOutcome>();
      const failed: string[] = [];
      for (const [id, { state, output }] of found)
        if (state === "completed") ended.set(id, output as JobOutcome);
        else if (state !== "open") failed.push(id);
      return { ended, failed, lost: ids.filter((id) => !found.has(id)) };
    },
    remove: async (id) => void (await boss.with((one) => one.deleteJob(name, id))),
    clear: () => boss.with((one) => one.deleteAllJobs(name)),
    tidy: () => boss.with((one) => one.supervise(name, { reindex: false })),
  };
}

function workersOn(
  boss: RenewedBoss,
  schema: string,
): Pick<Queue, "beat" | "sendAway" | "leave" | "workers"> {
  return {
    async beat(worker, entry) {
      const [row] = await boss.ask(
        `INSERT INTO ${schema}.workers (name, entry) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET entry = excluded.entry, seen = now() RETURNING sent_away`,
        [worker, JSON.stringify(entry)],
      );
      return row?.["sent_away"] === true;
    },
    sendAway: async (worker) =>
      void (await boss.ask(`UPDATE ${schema}.workers SET sent_away = TRUE WHERE name = $1`, [worker])),
    leave: async (worker) => void (await boss.ask(`DELETE FROM ${schema}.workers WHERE name = $1`, [worker])),
    async workers() {
      const rows = await boss.ask(
        `SELECT entry, extract(epoch FROM started) * 1000 AS started FROM ${schema}.workers
         WHERE seen > now() - ${workerSeconds} * interval '1s' ORDER BY started, name`,
      );
      return rows.map(({ entry, started }) => ({
        ...(entry as WorkerEntry),
        startedAt: Math.floor(Number(started)),
      }));
    },
  };
}

async function loadOf(boss: RenewedBoss, schema: string): Promise<QueueLoad> {
  const [row] = await boss.ask(
    `SELECT count(*) FILTER (WHERE state IN ('created', 'retry')) AS waiting,
            extract(epoch FROM now() - min(created_on) FILTER (WHERE state IN ('created', 'retry'))) * 1000 AS longest,
            count(*) FILTER (WHERE state = 'active') AS active FROM ${schema}.job WHERE name = $1`,
    [name],
  );
  const longest = row?.["longest"] ?? null;
  return {
    waiting: Number(row?.["waiting"] ?? 0),
    longestWaitMs: longest === null ? null : Math.max(0, Math.floor(Number(longest))),
    active: Number(row?.["active"] ?? 0),
  };
}

/**
 * Rings at each notification. The library's own listener ends the process if its connection is lost while it is being
 * closed. After a loss, listening starts again with the next successful query; everybody who waits for news also polls.
 */
function newsOf(address: DatabaseAddress, channel: string) {
  const listeners: { of: News; ring(): void }[] = [];
  let hearing: Promise<Client | null> | null = null;
  let isClosed = false;
  const begin = async (): Promise<Client | null> => {
    let client: Client | null = null;
    try {
      client = await connected(address, "bulkgen queue");
      client.once("end", () => {
        hearing = null;
      });
      client.on("notification", ({ payload }) => {
        for (const { of, ring } of listeners) if (of === payload) ring();
      });
      await client.query(`LISTEN ${channel}`);
      return client;
    } catch {
      if (client === null) hearing = null;
      else await client.end();
      return null;
    }
  };
  return {
    listeners,
    async hear(): Promise<void> {
      if (isClosed || listeners.length === 0) return;
      hearing ??= begin();
      await hearing;
    },
    async close(): Promise<void> {
      isClosed = true;
      const client = await hearing;
      if (client) await endClient(client);
    },
  };
}

/**
 * PostgreSQL ends one of two transactions that wait for each other, which may be the drop: it is tried this many times.
 */
const dropsMax = 20;

/**
 * Drops the queue, even if it cannot be opened, e.g. because another version of pg-boss made it. Rejects with
 * DatabaseTrouble, or PostgreSQL's error.
 */
export async function dropQueue(address: DatabaseAddress): Promise<void> {
  const client = await connected(address, "bulkgen queue");
  try {
    for (let left = dropsMax; ; left--)
      try {
        await client.query(`DROP SCHEMA IF EXISTS ${schemaOf(address)} CASCADE`);
        return;
      } catch (error) {
        if (left === 1 || (error as { code?: string }).code !== "40P01") throw explained(error, address);
      }
  } finally {
    await endClient(client);
  }
}

function schemaOf({ schema }: DatabaseAddress): string {
  return `${schema}_queue`;
}

/** Combines calls in the same turn of the event loop into one call, which returns their results in their order. */
function inOneGo<Given, Result>(
  carryOut: (given: Given[]) => Promise<Result[]>,
): (given: Given) => Promise<Result> {
  let waiting: Given[] = [];
  let results: Promise<Result[]> = Promise.resolve([]);
  return async (given) => {
    if (waiting.length === 0)
      results = new Promise<void>((resolve) => nextTurn(resolve)).then(() => {
        const all = waiting;
        waiting = [];
        return carryOut(all);
      });
    const index = waiting.push(given) - 1;
    return (await results)[index] as Result;
  };
}

/** For a command that cannot do without the queue. */
export function queueMissing(): EarlyExit {
  return new EarlyExit(
    "usage",
    "the fleet needs the package pg-boss, which is not installed. Nothing was sent. Install it where bulkgen is: npm install pg-boss@12.35.0",
  );
}

function affected(answer: object): boolean {
  return (answer as { affected?: number }).affected === 1;
}
