import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import pg from "pg";
import { databaseAddress } from "../../src/store/postgres/address.js";
import { holderOf } from "../../src/store/postgres/connect.js";
import { children, type Running } from "../e2e/process.js";
import { Auditor, type Cut } from "./auditor.js";
import { judge, untilDone } from "./judge.js";
import { pause } from "./kill.js";
import { databaseHost, Host, makeMiddle, openService } from "./network.js";
import { badEnd, openItems, Runner } from "./runner.js";
import { type Played, play, type Scene, type Stage } from "./scene.js";
import { Service } from "./service.js";

/**
 * A fleet whose hosts are cut off from the network and come back, judged like any torture: `fleet.js --partition`, which
 * starts this in a network of its own. Nobody is told of a cut: connections fall silent, as when a switch is off.
 */
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(130));

const { startOwnPostgres } = (await import(
  pathToFileURL(resolve("scripts", "postgres.mjs")).href
)) as typeof import("../../scripts/postgres.mjs");

makeMiddle();
const postgres = await startOwnPostgres({ host: databaseHost });

const lanes = 2;
const account = { plan: "Enterprise", credits: 10_000 };
/**
 * What has not happened after so long does not happen any more (ms). A paid request that gets no answer is waited for for
 * two minutes, also by a run that has lost its database.
 */
const patienceMs = 200_000;

const scenes: readonly Scene[] = [
  {
    name: "run cut off, all bought",
    play: (stage) => playCutRun(stage, { items: 40, bought: 40, taskMs: "20000-40000" }),
  },
  {
    name: "run cut off while it buys",
    play: (stage) => playCutRun(stage, { items: 200, bought: 40, taskMs: "10-60" }),
  },
  {
    name: "worker cut off",
    play: (stage) => playCutWorker(stage, ["database", "service"]),
  },
  {
    name: "worker without database",
    play: (stage) => playCutWorker(stage, ["database"]),
  },
];

/** The run's host is cut off; a worker that stands by on another one goes on. */
async function playCutRun(
  stage: Stage,
  { items, bought, taskMs }: { items: number; bought: number; taskMs: string },
): Promise<Played> {
  const fleet = await Fleet.start(stage, { items, service: new Service(stage.place, null, account, taskMs) });
  const first = await fleet.host("first");
  const other = await fleet.host("other");
  const standby = await fleet.worker(other, []);
  const run = fleet.runner(first).run();
  await until(`${bought} were bought`, async () => times(run.stdout(), '"event":"submitted"') >= bought);
  const cutAt = performance.now();
  const from = Date.now();
  first.cut("database", "service");
  await until("another host went on", async () => (await fleet.buyer()) === other.name);
  const wentOn = seconds(cutAt);
  // What the first had sent off was with the service, or was not, before the other one bought anything.
  fleet.cuts.push({ from: from - 1_000, to: Date.now(), lanes: bought === items ? 0 : lanes });
  const { code, stderr } = await run.ended;
  const endedAfter = seconds(cutAt);
  if (code !== 8) fleet.object(`the run that was cut off ended ${code} and not 8: ${stderr.slice(-500)}`);
  await until("the run was over", () => fleet.isOver());
  first.mend("database", "service");
  await fleet.drain(standby);
  const facts = await fleet.close(fleet.runner(first));
  return {
    facts: `went on after ${wentOn} s, the first ended with ${code} after ${endedAfter} s; ${facts}`,
    violations: fleet.violations,
  };
}

/** A worker's host is cut off in the middle of downloads, and comes back while the run still goes on. */
async function playCutWorker(stage: Stage, cut: ("database" | "service")[]): Promise<Played> {
  const stalls = { kind: "download-stalled", keep: 0.5, forMs: 12_000 } as const;
  const faults = { rules: [{ fault: stalls, every: 1 }] };
  const fleet = await Fleet.start(stage, { items: 8, service: new Service(stage.place, faults, account) });
  const victim = await fleet.host("victim");
  const [cutOff, left] = [
    await fleet.worker(victim, ["--only", "archive", "--downloads", "2", "--log-level", "debug"]),
    await fleet.worker(await fleet.host("left"), ["--only", "archive", "--downloads", "6"]),
  ];
  const first = fleet.runner(await fleet.host("first"));
  const run = first.run();
  await until("the worker downloaded", async () => (await fleet.busy(victim.name)) === 2);
  const cutAt = performance.now();
  victim.cut(...cut);
  await until("its downloads went to others", async () => (await fleet.leasesLost()) === 2);
  const lostAfter = seconds(cutAt);
  victim.mend(...cut);
  const backAt = performance.now();
  await until("what it had was dropped", async () => times(cutOff.stderr(), refusal) === 2);
  const droppedAfter = seconds(backAt);
  const { code, stderr } = await run.ended;
  if (code !== 0) fleet.object(`the run ended ${code}: ${stderr.slice(-500)}`);
  await fleet.drain(cutOff, left);
  const facts = await fleet.close(first);
  return {
    facts: `2 downloads went to others after ${lostAfter} s, it was back and dropped what it had after another ${droppedAfter} s; ${facts}`,
    violations: fleet.violations,
  };
}

/** What a worker logs of a download whose file it drops, because the database did not take its answer. */
const refusal = "the lease of a job has ended";

function times(text: string, part: string): number {
  return text.split(part).length - 1;
}

class Fleet {
  readonly violations: string[] = [];
  /** Stretches in which paid requests may have been cut off. */
  readonly cuts: Cut[] = [];
  private readonly url: string;
  private readonly middle: Runner;
  private readonly runners = new Map<Host, Runner>();
  private readonly auditor: Auditor;

  private constructor(
    private readonly stage: Stage,
    private readonly service: Service,
    private readonly items: number,
  ) {
    this.url = `${postgres.url}?schema=partition_${stage.seed}`;
    this.middle = this.newRunner({}, []);
    this.auditor = new Auditor({ rows: this.middle.rows, cap: null });
  }

  static async start(stage: Stage, { items, service }: { items: number; service: Service }): Promise<Fleet> {
    await service.start();
    stage.later(() => service.kill());
    stage.later(await openService(service.url));
    return new Fleet(stage, service, items);
  }

  async host(name: string): Promise<Host> {
    const host = await Host.start(name, this.stage.place, this.service.url);
    this.stage.later(host.end);
    this.runners.set(host, this.newRunner(host.env, host.by));
    return host;
  }

  /** On that host. */
  runner(host: Host): Runner {
    return this.runners.get(host) as Runner;
  }

  async worker(host: Host, flags: string[]): Promise<Running> {
    const worker = this.runner(host).worker(...flags);
    this.stage.later(() => worker.signal("SIGKILL"));
    await worker.prints(/is ready/);
    return worker;
  }

  object(...reasons: string[]): void {
    this.violations.push(...reasons);
  }

  /** The host of the process that submits; null between two. */
  async buyer(): Promise<string | null> {
    return (await holderOf(databaseAddress(this.url, { sandbox: false })))?.host ?? null;
  }

  async isOver(): Promise<boolean> {
    const status = await this.middle.status();
    return status !== null && openItems(status) === 0 && (await this.buyer()) === null;
  }

  /** Downloads that the worker of a host has in progress. */
  async busy(host: string): Promise<number> {
    const [row] = await this.ask(
      `SELECT sum((entry->>'busy')::int) AS busy FROM ${this.queue}.workers WHERE entry->>'host' = '${host}'`,
    );
    return Number(row?.["busy"] ?? 0);
  }

  /** Downloads whose lease has ended. */
  async leasesLost(): Promise<number> {
    const [row] = await this.ask(`SELECT count(*) AS lost FROM ${this.queue}.job WHERE retry_count > 0`);
    return Number(row?.["lost"] ?? 0);
  }

  /** Asks workers to end. */
  async drain(...workers: Running[]): Promise<void> {
    for (const worker of workers) worker.signal("SIGTERM");
    for (const worker of workers) {
      const { code, signal, stderr } = await worker.ended;
      if (code !== 0)
        this.object(`a worker that was asked to end ended ${signal ?? code}: ${stderr.slice(-500)}`);
    }
  }

  /** Judges it, after the finished sheet was run once more. */
  async close(again: Runner): Promise<string> {
    await this.service.restart({ wellBehaved: true });
    this.object(...(await untilDone(this.middle, () => undefined)));
    const before = this.service.ledger().length;
    this.object(...badEnd("a run of the finished sheet", await again.run().ended));
    const more = this.service.ledger().length - before;
    if (more > 0) this.object(`P2: running the finished sheet again made ${more} tasks`);
    const counts = (await this.middle.status())?.counts;
    const undecided = (counts?.held ?? 0) + (counts?.unknown ?? 0);
    const { tasks, files, violations } = await judge(this.service, this.middle, this.auditor, this.cuts);
    this.object(...violations);
    return `${this.items} items, ${tasks} tasks, ${files} files, ${undecided} left to decide`;
  }

  private get queue(): string {
    return `partition_${this.stage.seed}_queue`;
  }

  private newRunner(env: Record<string, string>, by: readonly string[]): Runner {
    const { place } = this.stage;
    return new Runner(place, {
      folder: place.folder,
      service: this.service,
      items: this.items,
      lanes,
      env: { ...env, BULKGEN_DATABASE_URL: this.url },
      flags: ["--no-work"],
      lifeMs: patienceMs,
      by,
    });
  }

  private async ask(sql: string): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: postgres.url });
    await client.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  }
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const began = performance.now();
  while (!(await holds())) {
    if (performance.now() - began > patienceMs)
      throw new Error(`expected within ${patienceMs} ms that ${what}`);
    await pause(100);
  }
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1_000).toFixed(1);
}

let violations = 0;
try {
  for (const [index, scene] of scenes.entries()) {
    const began = performance.now();
    const played = await play(scene, index + 1);
    violations += played.violations.length;
    const outcome = played.violations.length === 0 ? "held" : "BROKEN";
    console.log(`${scene.name.padEnd(27)}${outcome} in ${seconds(began)} s: ${played.facts}`);
    for (const violation of played.violations) console.log(`  ${violation}`);
  }
} finally {
  await postgres.stop();
}
console.log(`violations                 ${violations}`);
process.exit(violations === 0 ? 0 : 1);
