import type { Accounts } from "../../src/core/ports/accounts.js";
import { chance } from "./chance.js";
import type { FaultDesk } from "./fault-desk.js";
import { type Kernel, ProcessClock } from "./kernel.js";
import type { MemoryDisk } from "./memory-disk.js";
import type { Crash } from "./scenario.js";
import type { SharedLanes } from "./shared-lanes.js";
import { type Effect, type Sender, Violation, type Watch } from "./watch.js";

/** Far more than any run needs that comes to an end. */
const effectsMax = 10_000;

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
  effect<Result>(
    name: string,
    values: readonly unknown[],
    act: () => Promise<Result>,
    done: "begun" | "whole" = "begun",
  ): Promise<Result> {
    if (!this.alive) return never();
    const { desk } = this.machine;
    if (desk.effectCount >= effectsMax)
      return Promise.reject(new Violation("liveness", `more than ${effectsMax} effects`));
    const crash = desk.ofEffect(name);
    if (crash !== null && !crash.after) {
      if (crash.kind === "crash" && name.endsWith(".append")) this.tear(values);
      this.crash(crash);
      return never();
    }
    const result = act().then(
      (value) => this.outcome({ sender: this, name, values, result: value }, value),
      (error: unknown) => (this.alive ? Promise.reject(error) : never<Result>()),
    );
    return crash === null ? result : this.crashAfter(crash, result, done);
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

  /** What waits for the network has left by now, and that is the effect; a transaction is one when it is committed. */
  private async crashAfter<Result>(
    crash: Crash,
    result: Promise<Result>,
    done: "begun" | "whole",
  ): Promise<Result> {
    const settled = result.then(
      () => undefined,
      () => undefined,
    );
    await (done === "whole" ? settled : null);
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

  private tear([path, text]: readonly unknown[]): void {
    this.machine.disk.tear(String(path), String(text));
  }
}

/** What a dead process waits for. */
export function never<Result>(): Promise<Result> {
  return new Promise(() => {});
}
