import { chance } from "../chance.js";
import {
  checkTold,
  checkUnknowns,
  isExplained,
  type Life,
  pauseMs,
  refusals,
  standingOf,
} from "../person.js";
import type { Ending } from "../runner.js";
import type { FleetPlan, Scenario } from "../scenario.js";
import { Violation } from "../watch.js";
import { type Fleet, Host, type Program } from "./host.js";
import { WorkspaceLock } from "./lock.js";
import { SimulatedQueue } from "./queue.js";
import { FleetRules } from "./rules.js";

/** Executions after which a workspace that is not done counts as stuck. */
const executionsMax = 50;
/** So often a job may stand the same way when nothing more happens by itself. */
const sameMax = 3;
/** Milliseconds between two looks for a run whose process is gone, as in `src/job/run/fleet-worker.ts`. */
const watchMs = 3_000;
const watchMsMax = 30_000;
/** Nobody leaves workers running for longer than this (ms) while there is no run. */
const idleMs = 120_000;

/** A workspace that several hosts share: one has the run and a person, the others have workers that stand by. */
export async function liveInFleet(life: Life): Promise<void> {
  const { machine, scenario } = life;
  const { kernel, seed, watch } = machine;
  const plan = scenario.fleet as FleetPlan;
  const lock = new WorkspaceLock(kernel, chance(seed, "lock"));
  const now = () => kernel.now();
  const fleet: Fleet = {
    life,
    plan,
    queue: new SimulatedQueue(now),
    lock: life.mutant?.lock?.(lock) ?? lock,
    links: new Map(),
  };
  const rules = new FleetRules(now, lock, (sender) => fleet.links.get(sender), life.fleet);
  watch.add(lock, rules);
  const shift = new Shift(() => rules.begins());
  const hosts = Array.from({ length: plan.workers }, (_, index) => new WorkerHost(fleet, index + 1, shift));
  const person = new Person(fleet, shift);
  for (const { ms, fault, begin } of machine.desk.moments()) {
    kernel.schedule(kernel.now() + ms, () => {
      begin();
      if (fault.kind === "queue-dropped") fleet.queue.drop();
      else if (fault.kind === "database-cut")
        [person, ...hosts][fault.host]?.program?.link.cutFor(fault.forMs);
      else hosts[fault.host - 1]?.stop();
    });
  }
  const over = Promise.all(hosts.map((host) => host.live()));
  await person.live();
  shift.end();
  await over;
  // The next run removes what workers have left that were killed.
  await person.lastRun();
}

/** When workers are there. */
class Shift {
  isOn = false;
  isOver = false;
  private waiting: (() => void)[] = [];
  private readonly stops = new Set<() => void>();

  constructor(private readonly onBegin: () => void) {}

  begin(): void {
    if (!this.isOn) this.onBegin();
    this.isOn = true;
    for (const go of this.waiting.splice(0)) go();
  }

  pause(): void {
    this.isOn = false;
    for (const stop of this.stops) stop();
  }

  end(): void {
    this.isOver = true;
    this.pause();
    for (const go of this.waiting.splice(0)) go();
  }

  async begun(): Promise<void> {
    while (!this.isOn && !this.isOver) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  onPause(stop: () => void): void {
    this.stops.add(stop);
  }
}

/** A host with a worker, which is started again when it was killed. */
class WorkerHost {
  program: Program | null = null;
  private readonly host: Host;
  private halt = new AbortController();
  private isBuying = false;
  private isTold = false;

  constructor(
    private readonly fleet: Fleet,
    private readonly number: number,
    private readonly shift: Shift,
  ) {
    this.host = new Host(fleet, number);
    shift.onPause(() => this.stop());
  }

  /** As SIGTERM, but a run that it goes on with comes to its end. */
  stop(): void {
    this.isTold = true;
    if (!this.isBuying) this.halt.abort("stopped");
  }

  async live(): Promise<void> {
    const { machine } = this.fleet.life;
    const lot = chance(machine.seed, "worker", this.number);
    for (;;) {
      await this.shift.begun();
      if (this.shift.isOver) return;
      this.halt = new AbortController();
      this.isBuying = false;
      this.isTold = false;
      const program = this.host.start();
      this.program = program;
      const work = this.work(program).catch((error: unknown) => {
        if (!isDatabaseTrouble(error)) machine.kernel.fail(error);
      });
      await Promise.race([work, program.process.ended]);
      program.process.die();
      this.program = null;
      await checkUnknowns(this.fleet.life.workspace, this.fleet.life.scenario);
      if (!this.shift.isOver) await machine.kernel.sleep(lot.scale(1_000, 60_000));
    }
  }

  private async work(program: Program): Promise<void> {
    const { signal } = this.halt;
    const { clock } = program.process;
    const worker = program.openWorker();
    await worker.start();
    let pause = watchMs;
    while (!signal.aborted && !worker.isElsewhere) {
      await clock.sleep(pause, signal);
      if (signal.aborted) break;
      try {
        pause = (await this.standBy(program)) ? watchMs : Math.min(2 * pause, watchMsMax);
      } catch (error) {
        if (!isDatabaseTrouble(error)) throw error;
        pause = Math.min(2 * pause, watchMsMax);
      }
    }
    await worker.drain();
  }

  /** Goes on with a run whose process is gone. False when that could not be done. */
  private async standBy(program: Program): Promise<boolean> {
    const { life } = this.fleet;
    const run = await program.orphanedRun();
    const [job] = life.workspace.jobs;
    if (run === null || job === undefined) return true;
    job.run = run;
    this.isBuying = true;
    try {
      life.fleet.takeOvers++;
      const ending = await program.buy(job, "resume");
      if (ending !== "locked") return ending.kind === "ended";
      life.fleet.takeOvers--;
      return true;
    } finally {
      this.isBuying = false;
      if (this.isTold) this.stop();
    }
  }
}

/** Whoever started the run, and comes back to it. */
class Person {
  program: Program | null = null;
  private readonly host: Host;

  constructor(
    private readonly fleet: Fleet,
    private readonly shift: Shift,
  ) {
    this.host = new Host(fleet, 0);
  }

  async live(): Promise<void> {
    const { machine, workspace, scenario } = this.fleet.life;
    const { kernel, seed } = machine;
    const lot = chance(seed, "person", workspace.number);
    const [job] = workspace.jobs;
    if (job === undefined) return;
    const seen = new Map<string, number>();
    let standing = "";
    for (let execution = 1; execution <= executionsMax; execution++) {
      this.shift.begin();
      const ending = await this.execute(scenario.again);
      if (ending === "crashed" || ending === "locked") {
        await kernel.sleep(lot.scale(10_000, 600_000));
        continue;
      }
      const state = await standingOf(workspace, job, ending, false);
      standing = state.standing;
      checkTold(standing, ending);
      const count = (seen.get(standing) ?? 0) + 1;
      seen.set(standing, count);
      const isStill =
        state.isSettled && isExplained(ending, scenario, false) && count > sameMax + refusals(scenario);
      if (state.isDone || isStill) return;
      const pause = pauseMs(ending, lot.scale(60_000, state.isSettled ? 3_600_000 : 12 * 3_600_000));
      if (pause > idleMs) this.shift.pause();
      await kernel.sleep(pause);
    }
    throw new Violation("liveness", `not done after ${executionsMax} executions: ${standing}`);
  }

  async lastRun(): Promise<void> {
    const { kernel } = this.fleet.life.machine;
    for (let tries = 0; tries < sameMax; tries++) {
      const ending = await this.execute("resume");
      if (ending !== "crashed" && ending !== "locked" && ending.kind === "ended") return;
      await kernel.sleep(2 * watchMsMax);
    }
  }

  private async execute(again: Scenario["again"]): Promise<Ending | "locked" | "crashed"> {
    const { workspace, scenario } = this.fleet.life;
    const [job] = workspace.jobs;
    const program = this.host.start();
    this.program = program;
    const ending = await Promise.race<Ending | "locked" | "crashed">([
      job === undefined ? "locked" : program.buy(job, again).catch(brokenOff),
      program.process.ended,
    ]);
    program.process.die();
    this.program = null;
    await checkUnknowns(workspace, scenario);
    return ending;
  }
}

function brokenOff(error: unknown): Ending {
  if (!isDatabaseTrouble(error)) throw error;
  return { kind: "broken off", isDayOver: false };
}

function isDatabaseTrouble(error: unknown): boolean {
  return (error as { name?: unknown }).name === "DatabaseTrouble";
}
