import { afterAll, beforeAll, expect, test } from "vitest";
import { leaseSeconds, leasesMax } from "../../src/fleet/boss.js";
import type { DownloadJob } from "../../src/fleet/job.js";
import { type Collected, openQueue, type Queue, type TakenJob } from "../../src/fleet/queue.js";
import { databaseAddress } from "../../src/store/postgres/address.js";
import { systemClock } from "../../src/system.js";
import { type Chance, chance } from "../sim/chance.js";
import { SimulatedQueue } from "../sim/fleet/queue.js";
import { startPostgres, type TestPostgres } from "./postgres.js";

/**
 * The simulation of a fleet has a queue in memory in place of pg-boss (`test/sim/fleet/queue.ts`). Here both are asked the
 * same, in an order that follows from a seed, and have to answer the same. Time is pg-boss's own, moved by hand.
 */
let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

const stepsEach = 120;

test.each([1, 2])("the simulated queue answers as pg-boss does (seed %i)", answersAlike);
test.each([3, 4, 5, 6])(
  "the simulated queue answers as pg-boss does (seed %i)",
  { tags: ["long"] },
  answersAlike,
);

async function answersAlike(seed: number): Promise<void> {
  const both = await Both.open();
  const lot = chance(seed, "queue");
  try {
    for (let step = 0; step < stepsEach; step++) await both.step(lot);
  } finally {
    await both.real.close();
  }
  expect(both.redelivered).toBeGreaterThan(0);
}

test("the simulated queue gives a job up after as many lost workers as pg-boss does", async () => {
  const both = await Both.open();
  try {
    await both.put();
    for (let lost = 0; lost <= leasesMax; lost++) await both.loseWorker();
    expect(await both.collectAll()).toEqual({ ended: [], failed: [0], lost: [] });
  } finally {
    await both.real.close();
  }
});

test("jobs that are put in at the same moment have names of their own", async () => {
  const queue = await openQueue(databaseAddress(postgres.newWorkspace(), { sandbox: false }), systemClock);
  if (queue === null) throw new Error("pg-boss is not installed");
  try {
    const folders = Array.from({ length: 30 }, (_, at) => `set-${at}`);
    const ids = await Promise.all(folders.map((folder) => queue.put({ version: 1, folder } as DownloadJob)));
    const taken = await queue.take(folders.length);
    expect(new Map(taken.map(({ id, data }) => [id, data.folder]))).toEqual(
      new Map(ids.map((id, at) => [id, folders[at]])),
    );
  } finally {
    await queue.close();
  }
});

/** Both queues, each with its own names of the same jobs. */
class Both {
  redelivered = 0;
  private ms = Date.UTC(2026, 0, 5, 9);
  private readonly model: SimulatedQueue;
  private readonly own: Queue;
  /** Names of a job in the real queue and in the simulated one. */
  private readonly ids: [string, string][] = [];
  /** Leases that were given, old ones too. */
  private readonly leases: [TakenJob, TakenJob][] = [];

  private constructor(
    readonly real: Queue,
    private readonly url: string,
  ) {
    this.model = new SimulatedQueue(() => this.ms);
    this.own = this.model.connect();
  }

  static async open(): Promise<Both> {
    const url = postgres.newWorkspace();
    const real = await openQueue(databaseAddress(url, { sandbox: false }), systemClock);
    if (real === null) throw new Error("pg-boss is not installed");
    const both = new Both(real, url);
    await both.takeClock();
    return both;
  }

  async step(lot: Chance): Promise<void> {
    // Jobs that were put in at the same moment have no order.
    await this.setClock(lot.is(0.3) ? lot.scale(100, 12_000) : 1);
    const act = lot.pick<() => Promise<unknown>>([
      () => this.put(),
      () => this.put(),
      () => this.take(lot.whole(1, 3)),
      () => this.take(lot.whole(1, 3)),
      () => this.ofLease(lot, (queue, lease) => queue.renew(lease)),
      () => this.ofLease(lot, (queue, lease) => queue.complete(lease, { kind: "expired", status: 403 })),
      () => this.collect(this.ids.filter(() => lot.is(0.5))),
      () => this.tidy(),
      () => this.tidy(),
      () => this.tidy(),
      () => this.load(),
      () => this.workers(lot),
      () => (lot.is(0.1) ? this.lose(lot) : this.tidy()),
    ]);
    await act();
  }

  /** A worker takes a job and is never heard of again. */
  async loseWorker(): Promise<void> {
    await this.take(1);
    await this.setClock(leaseSeconds * 1_000 + 1);
    await this.tidy();
  }

  collectAll() {
    return this.collect(this.ids);
  }

  async put(): Promise<void> {
    const job = { version: 1, folder: `set-${this.ids.length}` } as DownloadJob;
    this.ids.push([await this.real.put(job), await this.own.put(job)]);
  }

  private async take(count: number): Promise<void> {
    // Those that are given at once come in no order.
    const [real, own] = [byJob(await this.real.take(count)), byJob(await this.own.take(count))];
    expect(real.map(({ retryCount, data }) => [data.folder, retryCount])).toEqual(
      own.map(({ retryCount, data }) => [data.folder, retryCount]),
    );
    for (const [at, lease] of real.entries()) this.leases.push([lease, own[at] as TakenJob]);
    this.redelivered += real.filter(({ retryCount }) => retryCount > 0).length;
  }

  private async ofLease(
    lot: Chance,
    ask: (queue: Queue, lease: TakenJob) => Promise<boolean>,
  ): Promise<void> {
    const last = this.leases.slice(-6);
    if (last.length === 0) return;
    const [real, own] = lot.pick(last);
    expect(await ask(this.real, real)).toBe(await ask(this.own, own));
  }

  private async collect(asked: readonly [string, string][]) {
    const [real, own] = [
      await this.real.collect(asked.map(([id]) => id)),
      await this.own.collect(asked.map(([, id]) => id)),
    ];
    const at = (side: 0 | 1, { ended, failed, lost }: Collected) => {
      const numbers = (ids: Iterable<string>) =>
        [...ids].map((id) => this.ids.findIndex((names) => names[side] === id)).toSorted((a, b) => a - b);
      return { ended: numbers(ended.keys()), failed: numbers(failed), lost: numbers(lost) };
    };
    expect(at(0, real)).toEqual(at(1, own));
    return at(0, real);
  }

  private async tidy(): Promise<void> {
    await this.real.tidy();
    await this.own.tidy();
  }

  private async load(): Promise<void> {
    const { waiting, active } = await this.real.load();
    expect({ waiting, active }).toEqual(pick(await this.own.load()));
  }

  private async workers(lot: Chance): Promise<void> {
    const name = `worker ${lot.whole(1, 2)}`;
    const entry = {
      host: name,
      pid: 1,
      version: "1",
      downloads: 2,
      busy: 0,
      done: 0,
      does: "archive",
    } as const;
    const act = lot.pick<(queue: Queue) => Promise<unknown>>([
      (queue: Queue) => queue.beat(name, entry),
      (queue: Queue) => queue.sendAway(name),
      (queue: Queue) => queue.leave(name),
    ]);
    expect(await act(this.real)).toEqual(await act(this.own));
  }

  /** A job is removed, or all are, or the schema is dropped. */
  private async lose(lot: Chance): Promise<void> {
    const ids = this.ids.at(-1);
    const how = lot.whole(1, 3);
    if (how === 1 && ids !== undefined) {
      await this.real.remove(ids[0]);
      await this.own.remove(ids[1]);
    } else if (how === 2) {
      await this.real.clear();
      await this.own.clear();
    } else {
      await postgres.query(this.url, `DROP SCHEMA ${this.schema} CASCADE`);
      this.model.drop();
      await this.real.clear();
      await this.takeClock();
    }
  }

  private get schema(): string {
    return `${new URL(this.url).searchParams.get("schema")}_queue`;
  }

  /** pg-boss asks a function of its own for the time. */
  private async takeClock(): Promise<void> {
    const { schema } = this;
    await postgres.query(this.url, `CREATE TABLE ${schema}.shown (ms BIGINT NOT NULL)`);
    await postgres.query(this.url, `INSERT INTO ${schema}.shown VALUES ($1)`, [this.ms]);
    await postgres.query(
      this.url,
      `CREATE OR REPLACE FUNCTION ${schema}.job_now() RETURNS TIMESTAMPTZ LANGUAGE sql STABLE
       AS 'SELECT to_timestamp(ms / 1000.0) FROM ${schema}.shown'`,
    );
  }

  private async setClock(byMs: number): Promise<void> {
    this.ms += byMs;
    await postgres.query(this.url, `UPDATE ${this.schema}.shown SET ms = $1`, [this.ms]);
  }
}

function byJob(taken: readonly TakenJob[]): TakenJob[] {
  return taken.toSorted((a, b) => a.data.folder.localeCompare(b.data.folder));
}

function pick({ waiting, active }: { waiting: number; active: number }) {
  return { waiting, active };
}
