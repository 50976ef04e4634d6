import { rmSync } from "node:fs";
import type { FaultPlanSettings } from "../../src/sandbox/faults/plan.js";
import { type Ended, makePlace, type Place, type Running } from "../e2e/process.js";
import { type Chance, chance } from "../sim/chance.js";
import { Auditor, type Cut } from "./auditor.js";
import { judge, untilDone } from "./judge.js";
import { chooseKill, endedAt, inflict, type Kill, killText, told } from "./kill.js";
import { type Phase, pointNames } from "./points.js";
import { badEnd, openItems, type PointAt, Runner, type Status } from "./runner.js";
import { Service } from "./service.js";
import type { Tally } from "./tally.js";

/** Kills in one round at most. */
export const killsMax = 9;
/** Processes that ended by themselves before their kill: what is left to do is of another kind then. */
const survivedMax = 2;
/** In a quarter of the rounds, with items enough for all of them; the others have one to four. */
const lanesMost = 16;

/**
 * One workspace, one service, one sheet: the runner is killed and started again, over and over, and judged after each
 * kill; then it is left alone until nothing more can be done, and judged as a whole. All choices follow from the seed;
 * what the machine makes of them does not, so a failure comes back often and not always. `lanes`: null has the seed choose.
 */
export async function round(seed: number, tally: Tally, lanes: number | null): Promise<void> {
  const place = makePlace("torture");
  const one = new Round(seed, place, tally, lanes);
  try {
    await one.service.start();
    await one.killOverAndOver();
    await one.finish();
  } catch (error) {
    one.object(`the round could not be played: ${error instanceof Error ? error.message : error}`);
  } finally {
    await one.service.kill();
    tally.rounds++;
  }
  if (one.isGood) rmSync(place.root, { recursive: true, force: true });
  else tally.violations.add(`seed ${seed}: its files are left in ${place.root}; ${one.history.join("; ")}`);
}

class Round {
  readonly history: string[] = [];
  isGood = true;
  readonly service: Service;
  private readonly random: Chance;
  private readonly isFaulty: boolean;
  private readonly runner: Runner;
  private readonly auditor: Auditor;
  private readonly cuts: Cut[] = [];
  private kills = 0;
  private survived = 0;
  /** What the program has reported since its last process ended; null while there is no run. */
  private status: Status | null = null;

  constructor(
    private readonly seed: number,
    place: Place,
    private readonly tally: Tally,
    given: number | null,
  ) {
    const random = chance(seed, "round");
    const faults = random.is(0.35) ? faultsOf(random) : null;
    this.random = random;
    this.isFaulty = faults !== null;
    this.service = new Service(place, faults);
    const few = { items: random.whole(10, 18), lanes: random.whole(1, 4) };
    const crowd = given ?? (chance(seed, "crowd").is(0.25) ? lanesMost : null);
    const { items, lanes } = crowd === null ? few : { items: Math.max(few.items, 3 * crowd), lanes: crowd };
    const cap = random.is(0.25) ? Math.ceil(items * 0.7) : null;
    // Where they hold submitting back, there is little left to be killed in the middle of.
    const unsettledMax = random.is(0.3) ? 5 : 100;
    this.runner = new Runner(place, {
      folder: place.folder,
      service: this.service,
      items,
      lanes,
      cap,
      unsettledMax,
    });
    this.auditor = new Auditor({ rows: this.runner.rows, cap });
    this.history.push(
      `${items} items, ${lanes} lanes${cap === null ? "" : `, cap ${cap}`}${this.isFaulty ? ", faults" : ""}`,
    );
  }

  object(...reasons: string[]): void {
    this.isGood &&= reasons.length === 0;
    for (const reason of reasons) this.tally.violations.add(`seed ${this.seed}: ${reason}`);
  }

  async killOverAndOver(): Promise<void> {
    for (let left = true; left && this.kills < killsMax && this.survived < survivedMax; )
      left = await this.killOnce();
  }

  /** False when there is nothing left to be killed in the middle of. */
  private async killOnce(): Promise<boolean> {
    const { status } = this;
    const counts = status?.counts;
    const phases: Phase[] = [];
    if (!counts || counts.planned > 0) phases.push("submit");
    if (counts && counts.processing + counts.ready > 0) phases.push("collect");
    if (counts && counts.unknown + counts.submitting > 0) phases.push("settle");
    if (phases.length === 0) return false;
    const kill = chooseKill(this.random, phases, this.tally.unreached, {
      items: status ? openItems(status) : 4,
      lanes: this.runner.options.lanes,
    });
    const point = kill.way === "point" ? kill : undefined;
    const from = Date.now();
    const running = this.start(status === null, point);
    const serviceDied = this.random.is(0.1) ? this.killService(running) : null;
    await inflict(kill, running);
    const end = await running.ended;
    const servicesKilled = (await serviceDied) ? 1 : 0;
    const { lanes } = this.runner.options;
    // What the process had sent off may arrive at a busy service after its end, but before the next one begins.
    await this.service.catchUp();
    this.status = await this.runner.status();
    const cut = { from, to: Date.now(), lanes: lanes * servicesKilled };
    this.history.push(
      `${killText(kill)} → ${end.signal ?? end.code}${servicesKilled ? " (service too)" : ""}`,
    );
    if (end.signal === "SIGKILL") {
      this.wasKilled(kill, end);
      cut.lanes += lanes;
    } else {
      this.survived++;
      this.object(...badEnd("a run that was to be killed", end));
    }
    this.cuts.push(cut);
    this.look();
    return true;
  }

  private start(isFirst: boolean, point: PointAt | undefined): Running {
    return isFirst || this.random.is(0.3) ? this.runner.run(point) : this.runner.resume(point);
  }

  private wasKilled(kill: Kill, end: Ended): void {
    this.kills++;
    const doubts = this.status?.counts.submitting ?? 0;
    const { lanes } = this.runner.options;
    if (doubts > lanes) this.object(`P3: ${doubts} items are in doubt after one kill, with ${lanes} lanes`);
    const name = endedAt(end.stderr);
    const point = pointNames.find((known) => known === name) ?? null;
    if (kill.way === "point" && point === null) this.object(`a process hung on the way to ${killText(kill)}`);
    this.tally.killed(kill.way, point, doubts, lanes);
  }

  /** Kills the service at the runner's next report, and starts it again where it was. */
  private async killService(running: Running): Promise<boolean> {
    await told(running, this.random.whole(2, 6));
    if (running.child.exitCode !== null || running.child.signalCode !== null) return false;
    await this.service.restart();
    this.tally.serviceKills++;
    return true;
  }

  private look(): void {
    this.object(...this.auditor.look(this.service.ledger(), this.runner.archive()));
  }

  /** Leaves the runner alone until nothing more can be done, and judges what it has done. */
  async finish(): Promise<void> {
    this.object(...(await untilDone(this.runner, () => this.look())));
    const tasks = this.service.ledger().length;
    const again = await this.runner.run().ended;
    this.object(...badEnd("a run of the finished sheet", again));
    const more = this.service.ledger().length - tasks;
    if (more > 0) this.object(`P2: running the finished sheet again made ${more} tasks`);
    await this.service.restart({ wellBehaved: true });
    const judgement = await judge(this.service, this.runner, this.auditor, this.isFaulty ? null : this.cuts);
    this.object(...judgement.violations);
    this.tally.tasks += judgement.tasks;
    this.tally.files += judgement.files;
  }
}

/** What goes wrong at the service in a round: replies that are lost, arrivals that are late, 500s. */
function faultsOf(random: Chance): FaultPlanSettings {
  return {
    seed: String(random.whole(1, 1e6)),
    rules: random
      .shuffle<NonNullable<FaultPlanSettings["rules"]>[number]>([
        { fault: "lost-reply", on: ["generate"], rate: 0.06 },
        { fault: { kind: "late-arrival", delayMs: 300 }, on: ["generate"], rate: 0.06 },
        { fault: "lost-request", on: ["generate", "task"], rate: 0.05 },
        { fault: { kind: "http-error", status: 500, seen: true }, on: ["generate"], rate: 0.04 },
        { fault: { kind: "http-error", status: 500 }, on: ["generate", "task"], rate: 0.04 },
        { fault: "generation-error", rate: 0.04 },
        { fault: "truncated-json", on: ["generate"], rate: 0.03 },
        { fault: "cut-reply", on: ["generate"], rate: 0.03 },
        { fault: "task-fails", rate: 0.08 },
        { fault: "download-truncated", rate: 0.1 },
        { fault: "download-expired", rate: 0.05 },
        { fault: { kind: "slow-answer", delayMs: 150 }, on: ["generate"], rate: 0.3 },
      ])
      .slice(0, random.whole(3, 9)),
  };
}
