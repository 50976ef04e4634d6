import { join } from "node:path";
import type { ItemState } from "../../src/core/item.js";
import { plus, toNumber } from "../../src/core/money.js";
import { toMicro } from "../../src/service/state/state.js";
import { ApprovalRules } from "./approval-rules.js";
import { ArchiveRules } from "./archive-rules.js";
import { audit } from "./auditor.js";
import { SimulatedBucket } from "./bucket.js";
import { CancelRules } from "./cancel-rules.js";
import { ChainRules, checkHandedOn } from "./chain-rules.js";
import { Databases } from "./databases.js";
import { FaultDesk } from "./fault-desk.js";
import { FileServer } from "./files.js";
import { liveInFleet } from "./fleet/live.js";
import { type FleetCounts, noCounts } from "./fleet/rules.js";
import { itemOf, jobOf } from "./jobs.js";
import { Kernel, ProcessClock } from "./kernel.js";
import { effectsMax, hasPendingCommits, type Machine } from "./machine.js";
import { MemoryDisk } from "./memory-disk.js";
import { priceOf } from "./models.js";
import { MoneyRules } from "./money-rules.js";
import { highestPriceOf, lowestPriceOf } from "./other-price.js";
import { formOf, outputBytes } from "./output-bytes.js";
import { live } from "./person.js";
import { PriceRules } from "./price-rules.js";
import { checkPublished, PublishRules } from "./publish-rules.js";
import { QuotaRules } from "./quota-rules.js";
import { remembering } from "./remembering.js";
import type { Substitution } from "./runner.js";
import { type Event, type FaultKind, keptOf, type Scenario } from "./scenario.js";
import { noServedCounts, type ServedCounts } from "./served/counts.js";
import { ServedSimulation } from "./served/simulation.js";
import { SimulatedService, userId } from "./service.js";
import { SharedLanes } from "./shared-lanes.js";
import { Trace } from "./trace.js";
import { type Trip, Violation, Watch } from "./watch.js";
import { Wire } from "./wire.js";
import { isCancelled, itemNumbered, type Job, type Workspace, workspaceOf } from "./workspace.js";

export interface Result {
  violation: Violation | null;
  /** The same for the same scenario, on every machine. */
  hash: string;
  effects: number;
  /** Virtual time that passed. */
  ms: number;
  /** States in which items were when a fault happened: `lost-reply submitting` and how often. */
  reached: ReadonlyMap<string, number>;
  faults: ReadonlyMap<FaultKind, number>;
  /** In which states the items were at the end, and how many; empty if the run broke a promise before its end. */
  ended: ReadonlyMap<ItemState, number>;
  fleet: FleetCounts;
  served: ServedCounts;
  /** The last things that happened, oldest first. */
  tail: readonly string[];
}

const beginning = Date.UTC(2026, 0, 5, 9);
const dayMs = 86_400_000;
const endings = { stuck: "nobody goes on", "too long": "it never ends" };
/** Workers look into the queue every second. */
const fleetEffectsMax = 150_000;
/** When an account that is short of credits gets more. */
const topUpMs = 7_200_000;

/** Runs a scenario to its end, or to the first promise that is broken. */
export async function simulate(scenario: Scenario, mutant?: Substitution): Promise<Result> {
  const { served } = scenario;
  const simulation =
    served === undefined ? new Simulation(scenario, mutant) : new ServedSimulation(scenario, served, mutant);
  const violation = await simulation.run().then(
    () => null,
    (error: unknown) =>
      error instanceof Violation ? error : new Violation("defect", (error as Error).stack ?? String(error)),
  );
  return simulation.close(violation);
}

class Simulation {
  private readonly machine: Machine;
  private readonly service: SimulatedService;
  private readonly workspaces: Workspace[];
  private readonly trace: Trace;
  private readonly prices: PriceRules;
  private readonly strangers = new Map<string, Buffer>();
  private readonly network: { wire: Wire; files: FileServer; bucket: SimulatedBucket | null };
  private readonly money: MoneyRules;
  private readonly databases: Databases;
  /** When the clock was last set. */
  private clockSetAt = Number.NEGATIVE_INFINITY;
  private readonly ended = new Map<ItemState, number>();
  private readonly fleet = noCounts();
  /** The items that the person has approved. */
  private readonly approved = new Set<string>();

  constructor(
    private readonly scenario: Scenario,
    private readonly mutant: Substitution | undefined,
  ) {
    const { seed } = scenario;
    const kernel: Kernel = new Kernel(
      beginning,
      () => hasPendingCommits() || this.machine.processes.some((one) => one.isWorking()),
    );
    const now = () => kernel.now();
    const wall = { offsetMs: 0 };
    this.databases = new Databases(new ProcessClock(kernel, wall, () => true));
    this.workspaces = Array.from({ length: scenario.workspaces }, (_, number) =>
      workspaceOf(number, remembering(this.databases.workspace()), scenario),
    );
    this.trace = new Trace(now, this.workspaces);
    const desk = new FaultDesk(scenario.faults, (fault, at) => this.trace.faultHappens(fault, at));
    const watch = new Watch((error) => kernel.fail(error));
    const disk = new MemoryDisk(now);
    this.service = new SimulatedService(scenario, now, () => this.network.bucket);
    const { ledger } = this.service;
    const prices = new PriceRules(scenario, this.workspaces);
    this.prices = prices;
    this.money = new MoneyRules(scenario, ledger, this.workspaces, prices, disk);
    const published = new PublishRules(
      scenario,
      () => this.network.bucket,
      now,
      () => this.clockSetAt,
    );
    watch.add(
      this.trace,
      this.money,
      prices,
      new CancelRules(now, this.workspaces),
      new QuotaRules(scenario, now, () => this.clockSetAt),
      new ChainRules(scenario, this.service, now, () => this.clockSetAt),
      new ApprovalRules(scenario, this.service, this.approved, this.workspaces),
      new ArchiveRules(disk, ledger, this.workspaces, scenario.fleet !== undefined),
      published,
    );
    const accounts = this.databases.accounts();
    this.machine = {
      kernel,
      disk,
      accounts,
      desk,
      watch,
      lanes: new SharedLanes(),
      seed,
      wall,
      processes: [],
      effectsMax: scenario.fleet === undefined ? effectsMax : fleetEffectsMax,
    };
    this.network = {
      wire: new Wire(kernel, this.service, desk, seed, watch, scenario.tellsTime),
      files: new FileServer(kernel, this.service, desk, seed, scenario.fleet?.pieceMs),
      bucket:
        scenario.publishing === undefined
          ? null
          : new SimulatedBucket(scenario.publishing, kernel, seed, disk, (process, hash) =>
              published.begins(process, hash, process.clock.now()),
            ),
    };
  }

  async run(): Promise<void> {
    const { machine, scenario } = this;
    const { kernel, desk } = machine;
    for (const { ms, fault, begin } of desk.timed()) {
      kernel.schedule(beginning + ms, () => {
        begin();
        this.happen(fault);
      });
    }
    const { ledger } = this.service;
    const { otherPrice } = scenario;
    if (otherPrice?.fromMs === 0) this.service.charge(otherPrice);
    else if (otherPrice)
      kernel.schedule(beginning + otherPrice.fromMs, () => this.service.charge(otherPrice));
    // More credits would hide whether all that need not be kept is spent.
    if (keptOf(scenario) === null)
      kernel.schedule(beginning + topUpMs, () => ledger.topUp(userId, toMicro(10_000)));
    let running = this.workspaces.length;
    for (const workspace of this.workspaces) {
      const { network, service, mutant, approved, fleet } = this;
      const go = scenario.fleet === undefined ? live : liveInFleet;
      void go({ machine, workspace, scenario, network, service, mutant, approved, fleet }).then(
        () => {
          running--;
        },
        (error: unknown) => kernel.fail(error),
      );
    }
    const end = await kernel.run(() => running === 0, beginning + scenario.daysMax * dayMs);
    if (end !== "ended") throw new Violation("liveness", `${endings[end]}: ${await this.standing()}`);
    const listed = await this.listed();
    for (const { state } of listed.values()) this.ended.set(state, (this.ended.get(state) ?? 0) + 1);
    const byId = new Map(scenario.items.map((item) => [item.id, item]));
    const runOf = new Map(this.runs().flatMap(({ ids }, run) => ids.map((id) => [id, run])));
    const cancelled = new Set(this.runs().flatMap(({ job, ids }) => (isCancelled(job) ? ids : [])));
    const replaced = new Set(scenario.items.map(({ replaces }) => replaces));
    const modelOf = (item: string) => byId.get(item)?.model ?? "";
    audit({
      ledger,
      disk: machine.disk,
      folders: this.runs().map(({ job }) => job.folder),
      listed,
      strangers: this.strangers,
      rejected: this.money.rejected,
      cap: scenario.maxCredits,
      modelCap: scenario.modelCap,
      spendable: this.spendable(),
      modelOf,
      priceOf: (item) => highestPriceOf(scenario, modelOf(item)),
      surpriseOf: (item) => highestPriceOf(scenario, modelOf(item)) - lowestPriceOf(scenario, modelOf(item)),
      mayWait: (item) =>
        this.waitsForPrice(modelOf(item)) ||
        this.isBelowCharge(item) ||
        cancelled.has(item) ||
        replaced.has(item),
      runOf: (item) => runOf.get(item) ?? 0,
      spent: await this.spent(),
      letGo: await this.letGo(),
      orphans: this.money.orphans,
      unknowable: this.money.unknowable(),
    });
    await this.checkChains();
  }

  /**
   * Requests that items were submitted again after. If a person has found the task of one for its item, the last request
   * of the item is the one that was in vain.
   */
  private async letGo(): Promise<Set<Trip>> {
    const found = new Set<string>();
    for (const { workspace, job } of this.runs()) {
      const items = await workspace.store.itemsOf(job.name);
      for (const { id } of items) found.add((await workspace.store.attempt(id))?.taskId ?? "");
    }
    const letGo = [...this.money.letGo].map((trip) =>
      found.has(trip.made?.id ?? "lost") ? this.money.lastPost(trip) : trip,
    );
    return new Set(letGo.filter(({ made }) => !found.has(made?.id ?? "lost")));
  }

  private async checkChains(): Promise<void> {
    const { scenario, service, machine } = this;
    const hasNone = scenario.items.every(({ takes, file }) => takes === undefined && file === undefined);
    if (!scenario.canary && hasNone) return;
    const now = machine.kernel.now();
    const byId = new Map(scenario.items.map((item) => [item.id, item]));
    const isThere = (address: string) => {
      const { goneAt = 0 } = service.output(address, now)?.task ?? {};
      return goneAt === null || now < goneAt;
    };
    for (const { workspace, job } of this.runs()) {
      if (job.run === null) continue;
      const blocked = await workspace.store.blocked(job.run.id);
      const { bucket } = this.network;
      const fileOf = (row: string) => byId.get(itemOf(job.number, row))?.file;
      // Nothing more is made of a cancelled run, also where an item was about to be sent when it was cancelled.
      if (bucket !== null && !isCancelled(job)) checkPublished(blocked, fileOf, bucket);
      // What else is left is left for want of a file.
      const others = blocked.filter(({ note }) => !note?.startsWith("cannot be published"));
      checkHandedOn(others, scenario, isThere, bucket !== null);
    }
  }

  /** Whether an item was planned at a price that had fallen, and an earlier, higher charge became known afterwards. */
  private isBelowCharge(item: string): boolean {
    return this.scenario.otherPrice?.agrees === false && this.prices.isBelow(item);
  }

  /** Whether nothing of a model is bought any more, because it has got dearer and nobody agrees to that. */
  private waitsForPrice(model: string): boolean {
    const { otherPrice } = this.scenario;
    return otherPrice?.model === model && !otherPrice.agrees && otherPrice.credits > priceOf(model);
  }

  /** Where others spend from it too, be it another workspace, an item may wait for the balance at any time. */
  private spendable(): number | null {
    const { keepCredits, workspaces } = this.scenario;
    if (keepCredits === undefined) return null;
    const least = keptOf(this.scenario);
    const { balanceMicro = 0 } = this.service.ledger.account(userId) ?? {};
    return least === null || workspaces > 1 ? 0 : balanceMicro / 1e6 - least;
  }

  close(violation: Violation | null): Result {
    const { machine, trace } = this;
    for (const process of machine.processes) process.die();
    this.databases.close();
    const { reached, faults } = trace;
    const ms = machine.kernel.now() - beginning;
    return {
      violation,
      hash: trace.hash,
      effects: machine.desk.effectCount,
      ms,
      reached,
      faults,
      ended: this.ended,
      fleet: this.fleet,
      served: noServedCounts(),
      tail: trace.tail,
    };
  }

  private happen(fault: Event): void {
    const { disk, wall, kernel } = this.machine;
    switch (fault.kind) {
      case "clock-jump":
        wall.offsetMs += fault.byMs;
        this.clockSetAt = kernel.now();
        for (const { clock } of this.machine.processes) clock.wasSet();
        return;
      case "disk-full":
        disk.fullUntil = kernel.now() + fault.forMs;
        return;
      case "foreign-writer":
        this.service.foreignPosts(fault.posts, fault.sameKey);
        return;
      case "stranger-file":
        this.putStranger(fault.item);
    }
  }

  private putStranger(item: number): void {
    const wanted = this.scenario.items[item];
    if (wanted === undefined) return;
    const { folder = "" } = this.workspaces[wanted.workspace]?.jobs[jobOf(wanted.id)] ?? {};
    const form = wanted.model === "sound" ? "wav" : formOf(wanted.id, "image");
    const path = join(folder, `${wanted.name}.${form}`);
    const content = outputBytes(form, "a stranger's");
    if (this.machine.disk.content(path) !== null) return;
    this.machine.disk.put(path, content);
    this.strangers.set(path, content);
  }

  private spent(): Promise<number[]> {
    return Promise.all(
      this.runs().map(async ({ workspace: { store }, job }) => {
        const own = (await store.runs()).filter(({ jobName }) => jobName === job.name);
        const runs = await Promise.all(own.map(({ id }) => store.spending(id)));
        return toNumber(plus(...runs.flatMap(({ charged, pending }) => [charged, pending])));
      }),
    );
  }

  private async standing(): Promise<string> {
    const left = [...(await this.listed())].filter(([, { state }]) => state !== "archived");
    return left.map(([item, { state, note }]) => `${item} ${state} (${note})`).join(", ");
  }

  private async listed(): Promise<Map<string, { state: ItemState; note: string | null }>> {
    const items = await Promise.all(
      this.runs().map(async ({ workspace, job }) => {
        const own = await workspace.store.itemsOf(job.name);
        return own.map(({ id, state, note }) => [itemNumbered(workspace, id), { state, note }] as const);
      }),
    );
    return new Map(items.flat());
  }

  /** Each job of each workspace, with its items. */
  private runs(): { workspace: Workspace; job: Job; ids: string[] }[] {
    return this.workspaces.flatMap((workspace) =>
      workspace.jobs.map((job) => ({
        workspace,
        job,
        ids: workspace.ids.filter((id) => jobOf(id) === job.number),
      })),
    );
  }
}
