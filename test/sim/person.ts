import type { ItemState } from "../../src/core/item.js";
import type { StopKind } from "../../src/core/stop.js";
import { awaitsBucket, type SimulatedBucket } from "./bucket.js";
import { Cancelling } from "./cancelling.js";
import { type Chance, chance } from "./chance.js";
import { Deciding } from "./deciding.js";
import type { FileServer } from "./files.js";
import type { FleetCounts } from "./fleet/rules.js";
import { ProcessClock } from "./kernel.js";
import { type Machine, Process } from "./machine.js";
import { type MendedService, Mending } from "./mending.js";
import { type Ending, execute, type Substitution } from "./runner.js";
import { keptOf, type Scenario } from "./scenario.js";
import { Violation } from "./watch.js";
import type { Wire } from "./wire.js";
import { changeSheet, type Job, type Workspace } from "./workspace.js";

/** The user: starts the program again after a crash, and later when it ended unfinished. */
export interface Life {
  machine: Machine;
  workspace: Workspace;
  scenario: Scenario;
  network: { wire: Wire; files: Pick<FileServer, "to">; bucket: SimulatedBucket | null };
  service: MendedService;
  mutant: Substitution | undefined;
  /** The scenario's items that this user has approved. */
  approved: Set<string>;
  /** What happens to a fleet. */
  fleet: FleetCounts;
}

/**
 * Executions after which a workspace that is not done counts as stuck. Beside another job's task that is never done
 * each of its lost requests takes a day to be judged, and somebody may look in every hour.
 */
const executionsMax = 120;
/**
 * So often a job may stand the same way when nothing more happens by itself: whoever tries each day what the day's requests
 * never reach for stops at last.
 */
const sameMax = 4;

const dayMs = 86_400_000;

export async function live(life: Life): Promise<void> {
  const { machine, workspace, scenario, network, service, mutant, approved } = life;
  const lot = chance(scenario.seed, "person", workspace.number);
  const cancelling = cancellingOf(life);
  const mending = new Mending(scenario, machine, service, workspace);
  const deciding = new Deciding(scenario, workspace, approved);
  const edits = chance(scenario.seed, "edits", workspace.number);
  const inTurn = new JobsInTurn(workspace.jobs, chance(scenario.seed, "jobs", workspace.number));
  const before = new Map<Job, { standing: string; times: number }>();
  const explained = new Tally();
  const ways = new Map<Job, Scenario["again"]>();
  for (let execution = 1; execution <= executionsMax; execution++) {
    inTurn.leave((await cancelling?.done()) ?? null);
    if (inTurn.areOver) return;
    const { job } = inTurn;
    const process = new Process(machine, workspace.number, job.number);
    const ports = {
      send: network.wire.from(process),
      download: network.files.to((wait) => process.asleep(wait)),
      bucket: network.bucket,
    };
    const again = cancelling?.wayOf(job) ?? ways.get(job) ?? scenario.again;
    const ending = await Promise.race([
      execute(process, workspace, job, { ...scenario, again }, ports, mutant, cancelling),
      process.ended,
    ]);
    process.die();
    await cancelling?.ended(ending === "crashed");
    await checkUnknowns(workspace, scenario);
    if (ending === "crashed") {
      await deciding.of(job);
      inTurn.turn();
      if (edits.is(0.5)) changeSheet(job);
      await machine.kernel.sleep(lot.scale(1_000, 600_000));
      continue;
    }
    const isShort = await lacksPolls(workspace, job, ending);
    const { isDone, isSettled, standing } = await standingOf(workspace, job, ending, isShort);
    checkTold(standing, ending);
    const decided = await deciding.of(job);
    // To agree to a new price, the user plans the manifest again; a resume continues at the old price.
    const agrees = ending.kind === "ended" && ending.isDearer && scenario.otherPrice?.agrees === true;
    // What was submitted for a cancelled run is not all that the manifest asks for.
    const isOnce = cancelling?.wayOf(job) === "run";
    const last = before.get(job);
    const times = standing === last?.standing ? last.times + 1 : 0;
    const mayEnd = isSettled && isExplained(ending, scenario, isShort);
    const seen = mayEnd ? explained.count(job, standing) : 0;
    const isStill =
      mayEnd &&
      (times > refusals(scenario) || seen > sameMax + refusals(scenario)) &&
      !agrees &&
      !(await awaitsBucket(network.bucket, scenario, workspace.store, job));
    const goesOn =
      isOnce || decided || ((isDone || isStill) && ((await mending.of(job)) || changeSheet(job)));
    inTurn.ended({ isDone: isDone && !goesOn, isStill: isStill && !goesOn });
    if (inTurn.areOver) return;
    inTurn.turn();
    if (goesOn) explained.forget(job);
    if (ending.kind === "ended") ways.set(job, agrees ? "run" : scenario.again);
    before.set(job, { standing, times });
    // A user who is told that settling takes a day comes back less often.
    const longest = isSettled ? 3_600_000 : 12 * 3_600_000;
    const pause = pauseMs(ending, lot.scale(60_000, longest));
    await machine.kernel.sleep(isShort ? dayMs + pause : pause);
  }
  throw new Violation(
    "liveness",
    `not done after ${executionsMax} executions: ${[...before.values()].map(({ standing }) => standing).join("; ")}`,
  );
}

/** How often each job stood in each way. */
class Tally {
  private readonly times = new Map<Job, Map<string, number>>();

  count(job: Job, standing: string): number {
    const own = this.times.get(job) ?? new Map<string, number>();
    this.times.set(job, own.set(standing, (own.get(standing) ?? 0) + 1));
    return own.get(standing) ?? 0;
  }

  forget(job: Job): void {
    this.times.delete(job);
  }
}

/** The jobs of a workspace, of which one runs at a time; the user may restart another one first. */
class JobsInTurn {
  job: Job;
  private left: readonly Job[];
  /**
   * Those that stood as before when they were looked at last. What another one did since may have made room for them.
   */
  private still: readonly Job[] = [];

  constructor(
    jobs: readonly Job[],
    private readonly lot: Chance,
  ) {
    this.left = jobs;
    this.job = jobs[0] as Job;
  }

  get areOver(): boolean {
    return this.unstill.length === 0;
  }

  ended({ isDone, isStill }: { isDone: boolean; isStill: boolean }): void {
    this.still = isStill ? [...this.still, this.job] : [];
    if (isDone) this.left = this.left.filter((job) => job !== this.job);
  }

  /** Nothing is left of a job, though it was not running. */
  leave(job: Job | null): void {
    if (job === null || !this.left.includes(job)) return;
    this.left = this.left.filter((one) => one !== job);
    this.still = [];
    if (this.job === job && !this.areOver) this.turn();
  }

  turn(): void {
    // Items are numbered as they are enrolled, and those of the first job come first.
    if (this.job.run !== null) this.job = this.lot.pick(this.unstill);
  }

  private get unstill(): Job[] {
    return this.left.filter((job) => !this.still.includes(job));
  }
}

/** The user who cancels the run of this workspace; null in most. */
function cancellingOf({ machine, workspace, scenario: { cancel, seed } }: Life): Cancelling | null {
  if (cancel?.workspace !== workspace.number) return null;
  const { kernel, wall, processes } = machine;
  const clock = new ProcessClock(kernel, wall, () => true);
  const cancelling = new Cancelling(
    workspace.store,
    workspace.jobs,
    cancel,
    clock,
    () => kernel.now(),
    chance(seed, "cancelling"),
  );
  const isAtWork = () =>
    processes.some((process) => process.isAlive() && process.workspace === workspace.number);
  kernel.schedule(kernel.now() + cancel.ms, () => {
    cancelling.begin(isAtWork()).catch((error: unknown) => kernel.fail(error));
  });
  return cancelling;
}

/**
 * Nothing is left to submit, and the rest of the day's requests does not reach for new addresses of what is handed on.
 */
async function lacksPolls({ store }: Workspace, { run }: Job, ending: Ending): Promise<boolean> {
  const stops = stopsOf(ending);
  if (run === null || stops.length === 0 || stops.some((kind) => kind !== "reserve")) return false;
  const { planned, blocked } = await store.counts(run.id);
  return planned === 0 && blocked > 0;
}

/** P3: a process leaves behind at most as many unanswered POSTs as it had lanes. */
export async function checkUnknowns({ store }: Workspace, { lanes }: Scenario): Promise<void> {
  const left = (await store.interrupted()).filter(({ state }) => state === "submitting");
  if (left.length > lanes) {
    throw new Violation(
      "P3",
      `${left.length} POSTs were cut off by the end of a process with ${lanes} lanes`,
    );
  }
}

/** P7: what is left to submit is reported, with the reason. */
export function checkTold(standing: string, ending: Ending): void {
  if (ending.kind === "broken off" || ending.stops.length > 0 || ending.reasons.length > 0) return;
  if (standing.includes("planned"))
    throw new Violation("P7", `the run has ended, and nothing says why it left ${standing}`);
}

export async function standingOf(
  { store }: Workspace,
  { run }: Job,
  ending: Ending,
  isShort: boolean,
): Promise<{ isDone: boolean; isSettled: boolean; standing: string }> {
  const brokenOff = { isDone: false, isSettled: false, standing: "broken off" };
  if (run === null || ending.kind === "broken off") return brokenOff;
  const counts = await store.counts(run.id);
  const open: ItemState[] = ["blocked", "planned", "submitting", "unknown", "processing", "overdue", "ready"];
  const left = open.filter((state) => counts[state] > 0).map((state) => `${counts[state]} ${state}`);
  // Who is told that the day lacks requests comes back on another day before anything counts as left behind.
  const standing = [...left, ...(isShort ? ["short of requests"] : stopsOf(ending))].join(", ");
  // P5: what became of an unanswered request is found out, or told to a person.
  return { isDone: left.length === 0, isSettled: counts.unknown === 0, standing };
}

/** Nothing more will happen by itself, and the program has said why: nothing that may be over the next time. */
export function isExplained(ending: Ending, scenario: Scenario, isShort: boolean): boolean {
  const caps: StopKind[] = ["cap", "keep"];
  const lasting: StopKind[] = [...caps, "credits"];
  // A user with --keep-credits does not top up the account.
  const enough = keptOf(scenario) === null ? caps : lasting;
  const stops = stopsOf(ending);
  const isCapped =
    stops.some((kind) => enough.includes(kind)) && stops.every((kind) => lasting.includes(kind));
  return ending.kind === "ended" && (stops.length === 0 || isCapped || isShort);
}

/**
 * How often something refuses a request for want of credits that are there: a user who sees the balance tries again.
 */
export function refusals({ faults }: Scenario): number {
  return faults.filter(({ fault }) => fault.kind === "refused" && fault.status === 402).length;
}

/** What stops it; that nothing more is submitted for a cancelled run stops nothing else. */
function stopsOf(ending: Ending): StopKind[] {
  const stops = ending.kind === "ended" ? ending.stops.map(({ kind }) => kind) : [];
  return stops.filter((kind) => kind !== "cancelled" && kind !== "collect");
}

export function pauseMs(ending: Ending, otherwise: number): number {
  const ofDay: StopKind[] = ["day", "daily"];
  const waitsForDay =
    ending.kind === "broken off" ? ending.isDayOver : stopsOf(ending).some((kind) => ofDay.includes(kind));
  return waitsForDay ? dayMs + otherwise : otherwise;
}
