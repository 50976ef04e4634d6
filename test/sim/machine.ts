import type { Accounts } from "../../src/store/accounts/accounts.js";
import { chance } from "./chance.js";
import type { FaultDesk } from "./fault-desk.js";
import { type Kernel, ProcessClock } from "./kernel.js";
import type { MemoryDisk } from "./memory-disk.js";
import type { Crash } from "./scenario.js";
import type { SharedLanes } from "./shared-lanes.js";
import { type Effect, type Sender, Violation, type Watch } from "./watch.js";

/** Far more than any run needs that comes to an end. */
export const effectsMax = 30_000;

/** The computer: what its processes share, and what survives them. */
export interface Machine {
  kernel: Kernel;
  disk: MemoryDisk;
  accounts: Accounts;
  desk: FaultDesk;
  watch: Watch;
  lanes: SharedLanes;
  seed: number;
  wall: { offsetMs: number };
  processes: Process[];
  /** Effects after which a run counts as one without an end. */
  effectsMax: number;
}

/** What a process commits to. Two ports may be parts of one database. */
export type Database = "state.db" | "accounts.db";

/** A transaction that a process has asked for. */
interface Requested {
  name: string;
  values: readonly unknown[];
  act(): Promise<unknown>;
  /** The process dies when this is committed, before it learns so. */
  crash: Crash | null;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** Commits that are asked for and not done yet: virtual time has to wait for them. */
let pending = 0;

export function hasPendingCommits(): boolean {
  return pending > 0;
}

/**
 * One execution of the program. Everything it does to the world goes through `effect`, where it can die: before the
 * effect, or after it and before it learns so. A dead process is never heard of again: whatever it still awaits never
 * comes.
 */
export class Process implements Sender {
  readonly clock: ProcessClock;
  readonly ended: Promise<"crashed">;
  private alive = true;
  private working = 0;
  private readonly requested = new Map<Database, Requested[]>();
  private end: () => void = () => {};

  constructor(
    readonly machine: Machine,
    readonly workspace: number,
    readonly job: number,
  ) {
    this.clock = new ProcessClock(machine.kernel, machine.wall, () => this.alive);
    this.ended = new Promise((resolve) => {
      this.end = () => resolve("crashed");
    });
    machine.processes.push(this);
  }

  isAlive(): boolean {
    return this.alive;
  }

  isWorking(): boolean {
    return this.alive && this.working > 0;
  }

  /** Something that changes the world. */
  effect<Result>(name: string, values: readonly unknown[], act: () => Promise<Result>): Promise<Result> {
    if (!this.alive) return never();
    if (this.hasTooMany()) return Promise.reject(this.tooMany());
    const crash = this.crashAt(name, values);
    if (crash === "dead") return never();
    const result = act().then(
      (value) => this.outcome({ sender: this, name, values, result: value }, value),
      (error: unknown) => (this.alive ? Promise.reject(error) : never<Result>()),
    );
    return crash === null ? result : this.crashAfter(crash, result);
  }

  /**
   * A transaction. Those that are asked of a database in one turn of the event loop share one commit, as in the program:
   * whoever dies before it has done none of them, whoever dies after it has done all of them and knows of none.
   */
  transaction<Result>(
    database: Database,
    name: string,
    values: readonly unknown[],
    act: () => Promise<Result>,
  ): Promise<Result> {
    if (!this.alive) return never();
    if (this.hasTooMany()) return Promise.reject(this.tooMany());
    const crash = this.crashAt(name, values);
    if (crash === "dead") return never();
    return new Promise<Result>((resolve, reject) => {
      const group = this.requested.get(database) ?? [];
      group.push({ name, values, act, crash, resolve: resolve as (result: unknown) => void, reject });
      if (group.length > 1) return;
      this.requested.set(database, group);
      pending++;
      setImmediate(() => void this.commit(database).finally(() => pending--));
    });
  }

  private async commit(database: Database): Promise<void> {
    const group = this.requested.get(database) ?? [];
    this.requested.delete(database);
    if (!this.alive) return;
    const results = await Promise.allSettled(group.map(({ act }) => act()));
    if (!this.alive) return;
    const answers = group.map((one, at) => this.answerOf(one, results[at] as PromiseSettledResult<unknown>));
    const crash = group.find((one) => one.crash !== null)?.crash;
    if (crash) return this.crash(crash);
    for (const answer of answers) answer();
  }

  /** Tells of a transaction that is committed. The result lets its process know. */
  private answerOf({ name, values, resolve, reject }: Requested, result: PromiseSettledResult<unknown>) {
    if (result.status === "rejected") return () => reject(result.reason);
    const { value } = result;
    try {
      this.machine.watch.tell("done", { sender: this, name, values, result: value });
    } catch (violation) {
      return () => reject(violation);
    }
    return () => resolve(value);
  }

  /** The crash that comes after this effect, if any; the process is dead where it came before. */
  private crashAt(name: string, values: readonly unknown[]): Crash | null | "dead" {
    const crash = this.machine.desk.ofEffect(name);
    if (crash === null || crash.after) return crash;
    if (crash.kind === "crash" && name.endsWith(".append")) this.tear(values);
    this.crash(crash);
    return "dead";
  }

  /** Something that only looks. */
  look<Result>(act: () => Promise<Result>): Promise<Result> {
    if (!this.alive) return never();
    return act().then((value) => (this.alive ? value : never()));
  }

  /** Real work for which virtual time stands still, but for what is done within `asleep`. */
  async work<Result>(act: () => Promise<Result>): Promise<Result> {
    this.working++;
    try {
      return await act();
    } finally {
      this.working--;
    }
  }

  async asleep<Result>(wait: () => Promise<Result>): Promise<Result> {
    this.working--;
    try {
      return await wait();
    } finally {
      this.working++;
    }
  }

  die(): void {
    this.alive = false;
    this.end();
  }

  private outcome<Result>(effect: Effect, value: Result): Result | Promise<Result> {
    if (!this.alive) return never();
    this.machine.watch.tell("done", effect);
    return value;
  }

  /** What waits for the network has left by now, and that is the effect. */
  private async crashAfter<Result>(crash: Crash, result: Promise<Result>): Promise<Result> {
    result.catch(() => undefined);
    await null;
    this.crash(crash);
    return never();
  }

  private crash(crash: Crash): void {
    const { processes, watch, disk, desk, seed } = this.machine;
    const isPowerCut = crash.kind === "power-cut";
    const dying = processes.filter((process) => process.isAlive() && (isPowerCut || process === this));
    for (const process of dying) process.die();
    if (isPowerCut) disk.powerCut(chance(seed, "power", desk.effectCount));
    watch.tell("crashed", dying, isPowerCut);
  }

  private hasTooMany(): boolean {
    return this.machine.desk.effectCount >= this.machine.effectsMax;
  }

  private tooMany(): Violation {
    return new Violation("liveness", `more than ${this.machine.effectsMax} effects`);
  }

  private tear([path, text]: readonly unknown[]): void {
    this.machine.disk.tear(String(path), String(text));
  }
}

/** What a dead process waits for. */
export function never<Result>(): Promise<Result> {
  return new Promise(() => {});
}
