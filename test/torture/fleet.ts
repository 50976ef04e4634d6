import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";
import { databaseAddress } from "../../src/store/postgres/address.js";
import { holderOf } from "../../src/store/postgres/connect.js";
import { children, lifeMsMax, makePlace, type Place, type Running } from "../e2e/process.js";
import { type Chance, chance } from "../sim/chance.js";
import { Auditor, type Cut } from "./auditor.js";
import { judge, untilDone } from "./judge.js";
import { pause } from "./kill.js";
import { inOwnNetwork, whyNoHosts } from "./network.js";
import { badEnd, openItems, Runner } from "./runner.js";
import { Service } from "./service.js";

/**
 * A fleet on one database, whose processes are killed, stopped and continued at random, whose queue is dropped, whose
 * connections are cut and whose server is restarted; judged like any torture, by the service's books and the archive. A
 * run has to go on by itself.
 *
 *   --kills N     so many processes at least are killed, in as many rounds as that takes
 *   --items N     in each round; with more than a hundred, a round is struck until its run has ended, and a stopped worker
 *                 goes on once its leases have ended
 *   --workers N   beside the run; half of them stand by
 *   --lanes N     of the run (default: 2)
 *   --plan PLAN   of the service; with a limit, no request may be refused
 *   --seed S      from that seed on
 *   --partition   instead: hosts that are cut off from the network (partition.ts); needs Linux, with namespaces of networks
 */
const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "12" },
    items: { type: "string", default: "36" },
    workers: { type: "string", default: "4" },
    lanes: { type: "string", default: "2" },
    plan: { type: "string", default: "Enterprise" },
    seed: { type: "string", default: "1" },
    partition: { type: "boolean", default: false },
  },
});
if (values.partition) {
  const why = whyNoHosts();
  if (why !== null) console.error(`NOT PLAYED: this system allows no namespaces of networks: ${why}`);
  process.exit(why === null ? await inOwnNetwork(join(import.meta.dirname, "partition.js")) : 1);
}
const given = process.env["TEST_DATABASE_URL"];
const { startOwnPostgres } = (await import(
  pathToFileURL(resolve("scripts", "postgres.mjs")).href
)) as typeof import("../../scripts/postgres.mjs");
/** Null for a server that is not ours to restart. */
const own = given === undefined ? await startOwnPostgres() : null;
const server = own?.url ?? `${given}`;

const deck = ["buyer", "buyer", "worker", "worker", "stop", "queue", "connections", "restart"] as const;
type Blow = (typeof deck)[number];
const blows = deck.filter((blow) => blow !== "restart" || own !== null);
const tally = {
  rounds: 0,
  tasks: 0,
  files: 0,
  /** Items in doubt when all was done that could be. */
  unknown: 0,
  refused: 0,
  done: new Map<Blow, number>(),
  /** Ms from the end of a buyer, or of its connections, to the report of the one that goes on. */
  gaps: [] as number[],
  doubts: new Map<number, number>(),
};
const violations = new Set<string>();
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

const lanes = Number(values.lanes);
const items = Number(values.items);
const isLong = items > 100;
const blowsMax = isLong ? Number.POSITIVE_INFINITY : deck.length;
const killsDone = () => (tally.done.get("buyer") ?? 0) + (tally.done.get("worker") ?? 0);
/** By then another process has gone on with the run of one that was lost (ms). */
const recoveryMs = 30_000;
/** A run of which nothing was done for so long does not go on by itself (ms). */
const patienceMs = 120_000;
/** A worker that is stopped for so long has lost its leases (ms). */
const leaseMs = 13_000;

class Round {
  isGood = true;
  readonly history: string[] = [];
  readonly service: Service;
  private readonly random: Chance;
  private readonly runner: Runner;
  private readonly auditor: Auditor;
  private readonly url: string;
  private readonly cuts: Cut[] = [];
  /** Each with the flags that it was started with. */
  private readonly workers = new Map<Running, string[]>();
  private readonly stopped = new Set<Running>();
  private run: Running | null = null;

  constructor(
    private readonly seed: number,
    private readonly place: Place,
  ) {
    this.random = chance(seed, "fleet");
    this.service = new Service(place, null, { plan: values.plan, credits: 10 * items + 1_000 });
    this.url = `${server}?schema=torture_${process.pid}_${seed}`;
    this.runner = new Runner(place, {
      folder: place.folder,
      service: this.service,
      items,
      lanes,
      env: { BULKGEN_DATABASE_URL: this.url },
      flags: this.random.is(0.5) ? ["--no-work"] : [],
      lifeMs: isLong ? 0 : lifeMsMax,
    });
    this.auditor = new Auditor({ rows: this.runner.rows, cap: null });
  }

  async play(): Promise<void> {
    await this.service.start();
    if (values.plan !== "Enterprise") await this.service.count429();
    for (let worker = 0; worker < Number(values.workers); worker++)
      await this.startWorker(worker % 2 === 0 ? ["--only", "archive"] : []);
    this.run = this.runner.run();
    await this.run.prints(/"event":"submitted"/);
    let left: Blow[] = [];
    for (let struck = 0; struck < blowsMax && killsDone() < Number(values.kills); struck++) {
      if (!(await this.isUnderWay())) break;
      await pause(this.random.whole(100, 2_500));
      if (left.length === 0) left = this.random.shuffle(blows);
      await this.strike(left.pop() as Blow);
      this.look();
    }
    for (const worker of this.stopped) worker.signal("SIGCONT");
    await this.wentOn();
    for (const worker of this.workers.keys()) worker.signal("SIGTERM");
    for (const worker of this.workers.keys()) {
      const { code, signal, stderr } = await worker.ended;
      if (code !== 0)
        this.object(`a worker that was asked to end ended ${signal ?? code}: ${stderr.slice(-3_000)}`);
    }
    const ended = await this.run.ended;
    if (ended.code !== null) this.object(...badEnd("the run", ended));
    this.object(...(await untilDone(this.runner, () => this.look())));
    const tasks = this.service.ledger().length;
    this.object(...badEnd("a run of the finished sheet", await this.runner.run().ended));
    const more = this.service.ledger().length - tasks;
    if (more > 0) this.object(`P2: running the finished sheet again made ${more} tasks`);
    // The judge's own requests must not be refused.
    if (values.plan !== "Enterprise") await this.service.restart({ plan: "Enterprise" });
    const judgement = await judge(this.service, this.runner, this.auditor, this.cuts);
    this.object(...judgement.violations);
    tally.tasks += judgement.tasks;
    tally.files += judgement.files;
    const { refused } = this.service;
    if (refused > 0) this.object(`P9: ${refused} requests were refused for the limit of the plan`);
    tally.refused += refused;
    const counts = (await this.runner.status())?.counts;
    const unknown = (counts?.held ?? 0) + (counts?.unknown ?? 0);
    const explained = this.cuts.reduce((sum, cut) => sum + cut.lanes, 0);
    if (unknown > explained) this.object(`P3: ${unknown} items are in doubt, and blows explain ${explained}`);
    tally.unknown += unknown;
  }

  async end(): Promise<void> {
    for (const worker of this.workers.keys()) worker.signal("SIGKILL");
    this.run?.signal("SIGKILL");
    await this.service.kill();
    await this.service.close();
    tally.rounds++;
    if (this.isGood) rmSync(this.place.root, { recursive: true, force: true });
    else
      violations.add(
        `seed ${this.seed}: its files are left in ${this.place.root}; ${this.history.join("; ")}`,
      );
  }

  object(...reasons: string[]): void {
    this.isGood &&= reasons.length === 0;
    for (const reason of reasons) violations.add(`seed ${this.seed}: ${reason}`);
  }

  private async startWorker(flags: string[]): Promise<void> {
    const worker = this.runner.worker("--downloads", "2", ...flags);
    this.workers.set(worker, flags);
    await worker.prints(/is ready/);
  }

  private async isUnderWay(): Promise<boolean> {
    const status = await this.runner.status();
    return status === null || openItems(status) > 0;
  }

  /** The process that submits now; null between two. */
  private async buyer(): Promise<Running | null> {
    const holder = await holderOf(databaseAddress(this.url, { sandbox: false }));
    if (holder === null || holder.host !== hostname()) return null;
    const all = [...this.workers.keys(), ...(this.run === null ? [] : [this.run])];
    return all.find(({ pid }) => pid === holder.pid) ?? null;
  }

  private async strike(blow: Blow): Promise<void> {
    const buyer = await this.buyer();
    const others = [...this.workers.keys()].filter((worker) => worker !== buyer && !this.stopped.has(worker));
    const from = Date.now() - 200;
    if (blow === "buyer") {
      if (buyer === null) return;
      buyer.signal("SIGKILL");
      await buyer.ended;
      await this.lost(buyer, from);
    } else if (blow === "worker") {
      const victim = this.random.pick(others);
      victim.signal("SIGKILL");
      await victim.ended;
      const flags = this.workers.get(victim) ?? [];
      this.workers.delete(victim);
      await this.startWorker(flags);
    } else if (blow === "stop") {
      const [woken] = this.stopped;
      if (woken) {
        this.stopped.delete(woken);
        woken.signal("SIGCONT");
      }
      // One is always left that stands by.
      const victim = this.random.pick(others.filter((worker) => this.workers.get(worker)?.length === 2));
      victim.signal("SIGSTOP");
      if (isLong) {
        await pause(leaseMs);
        victim.signal("SIGCONT");
      } else this.stopped.add(victim);
    } else if (blow === "queue") {
      await this.dropQueue();
    } else if (blow === "restart") {
      await own?.halt();
      await pause(this.random.whole(0, 3_000));
      await own?.start();
      this.cuts.push({ from, to: Date.now() + 10_000, lanes });
      await this.goesOn(performance.now());
    } else {
      await this.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name LIKE 'bulkgen%'",
      );
      // The buyer has lost its lock; what it had sent off is in doubt.
      this.cuts.push({ from, to: Date.now() + 10_000, lanes });
      await this.goesOn(performance.now());
    }
    this.history.push(blow);
    tally.done.set(blow, (tally.done.get(blow) ?? 0) + 1);
  }

  /** A buyer was killed: another one goes on. */
  private async lost(buyer: Running, from: number): Promise<void> {
    const gone = performance.now();
    const doubts = (await this.runner.status())?.counts.submitting ?? 0;
    tally.doubts.set(doubts, (tally.doubts.get(doubts) ?? 0) + 1);
    if (doubts > lanes) this.object(`P3: ${doubts} items are in doubt after one kill, with ${lanes} lanes`);
    this.cuts.push({ from, to: Date.now(), lanes });
    const flags = this.workers.get(buyer);
    this.workers.delete(buyer);
    if (flags !== undefined) await this.startWorker(flags);
    await this.goesOn(gone);
  }

  /** Waits for the one that goes on. */
  private async goesOn(gone: number): Promise<void> {
    for (;;) {
      if ((await this.buyer()) !== null || !(await this.isUnderWay())) break;
      if (performance.now() - gone > recoveryMs)
        return this.object(`nobody went on with the run within ${recoveryMs / 1_000} s`);
      await pause(100);
    }
    tally.gaps.push(performance.now() - gone);
  }

  /** Waits until the run has ended, by whichever process. */
  private async wentOn(): Promise<void> {
    let [files, since] = [0, performance.now()];
    while ((await this.isUnderWay()) || (await this.buyer()) !== null) {
      const archived = (await this.runner.status())?.counts.archived ?? 0;
      if (archived > files) [files, since] = [archived, performance.now()];
      if (performance.now() - since > patienceMs) return this.object("the run did not end by itself");
      await pause(isLong ? 1_000 : 200);
    }
  }

  /** Others write meanwhile: a file that a line tells of is there when it is read after the line. */
  private look(): void {
    const { lines } = this.runner.archive();
    this.object(...this.auditor.look(this.service.ledger(), { ...this.runner.archive(), lines }));
  }

  private async dropQueue(): Promise<void> {
    const drop = `DROP SCHEMA IF EXISTS ${new URL(this.url).searchParams.get("schema")}_queue CASCADE`;
    const isDropped = () =>
      this.ask(drop).then(
        () => true,
        (error: Error & { code?: string }) => {
          // PostgreSQL ends one of two that wait for each other, which may be this one.
          if (error.code === "40P01") return false;
          throw error;
        },
      );
    while (!(await isDropped()));
  }

  private async ask(sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: server });
    // The query fails with the reason.
    client.on("error", () => undefined);
    await client.connect();
    await client.query(sql);
    await client.end();
  }
}

const began = performance.now();
try {
  for (let seed = Number(values.seed); killsDone() < Number(values.kills) && violations.size === 0; seed++) {
    const round = new Round(seed, makePlace("fleet"));
    try {
      await round.play();
    } catch (error) {
      round.object(`the round could not be played: ${error instanceof Error ? error.message : error}`);
    } finally {
      await round.end();
    }
  }
} finally {
  await own?.stop();
}
const gaps = tally.gaps.toSorted((a, b) => a - b).map((ms) => (ms / 1000).toFixed(1));
const broken = (promise: string) => [...violations].filter((line) => line.includes(` ${promise}: `)).length;
console.log(
  [
    `fleet torture, seed ${values.seed}, ${values.items} items, ${lanes} lanes, ${values.workers} workers, ${values.plan}, ${Math.round((performance.now() - began) / 1000)} s`,
    `rounds            ${tally.rounds}: ${tally.tasks} tasks and ${tally.files} files judged`,
    `blows             ${[...tally.done].map(([blow, number]) => `${blow} ${number}`).join(", ")}${own === null ? " (no restart: the server is not ours)" : ""}`,
    `posted twice      ${broken("P2")}`,
    `lost              ${broken("P3") + broken("P4")}`,
    `in doubt          ${[...tally.doubts].map(([doubts, kills]) => `${doubts} after ${kills}`).join(", ")}; ${tally.unknown} left in the end`,
    `refused           ${values.plan === "Enterprise" ? "not counted: the plan has no limit" : `${tally.refused} requests`}`,
    `went on after     ${gaps.length === 0 ? "-" : `${gaps[Math.floor(gaps.length / 2)]} s, at most ${gaps.at(-1)} s`}`,
    `violations        ${violations.size}`,
    ...[...violations].map((line) => `  ${line}`),
  ].join("\n"),
);
process.exitCode = violations.size === 0 ? 0 : 1;
