import type { ItemState } from "../../../src/core/item.js";
import { toMicro } from "../../../src/service/state/state.js";
import { Databases } from "../databases.js";
import { FaultDesk } from "../fault-desk.js";
import { noCounts } from "../fleet/rules.js";
import { Kernel, ProcessClock } from "../kernel.js";
import { effectsMax, hasPendingCommits, type Machine } from "../machine.js";
import { MemoryDisk } from "../memory-disk.js";
import { live } from "../person.js";
import { remembering } from "../remembering.js";
import type { Substitution } from "../runner.js";
import type { Scenario, ServedPlan } from "../scenario.js";
import { SharedLanes } from "../shared-lanes.js";
import { Trace } from "../trace.js";
import { Violation, Watch } from "../watch.js";
import { Wire } from "../wire.js";
import { itemNumbered, type Workspace, workspaceOf } from "../workspace.js";
import { auditServed } from "./audit.js";
import { noServedCounts } from "./counts.js";
import { FilesAtOnce } from "./files-at-once.js";
import { ServedHost } from "./host.js";
import { Operator } from "./operator.js";
import { ServedRules } from "./rules.js";
import { Upstream } from "./upstream.js";

const beginning = Date.UTC(2026, 0, 5, 9);
const dayMs = 86_400_000;
/** How often the service is looked at once the command has ended. */
const lookMs = 600_000;
/** A task takes its user so many rounds at most: each may fail, be retried and become overdue. */
const roundsMax = 8;

/** The real command at one end of the wire, and the real service of a models file at the other. */
export class ServedSimulation {
  private readonly kernel: Kernel;
  private readonly machine: Machine;
  private readonly workspace: Workspace;
  private readonly trace: Trace;
  private readonly host: ServedHost;
  private readonly wire: Wire;
  private readonly upstream: Upstream;
  private readonly operator: Operator;
  private readonly databases: Databases;
  private readonly files = new FilesAtOnce();
  private readonly figures = noServedCounts();
  private readonly ended = new Map<ItemState, number>();

  constructor(
    private readonly scenario: Scenario,
    plan: ServedPlan,
    private readonly mutant: Substitution | undefined,
  ) {
    const { seed } = scenario;
    const kernel: Kernel = new Kernel(
      beginning,
      () =>
        hasPendingCommits() || this.host.isWorking() || this.machine.processes.some((one) => one.isWorking()),
    );
    this.kernel = kernel;
    const now = () => kernel.now();
    const wall = { offsetMs: 0 };
    this.databases = new Databases(new ProcessClock(kernel, wall, () => true));
    this.workspace = workspaceOf(0, remembering(this.databases.workspace()), scenario);
    this.trace = new Trace(now, [this.workspace]);
    const desk = new FaultDesk(scenario.faults, (fault, at) => this.trace.faultHappens(fault, at));
    const watch = new Watch((error) => kernel.fail(error));
    const { figures, files } = this;
    const rules = new ServedRules({
      balanceMicro: toMicro(scenario.balance),
      upstream: () => this.upstream,
      records: () => this.host.records,
      figures,
      fail: (violation) => kernel.fail(violation),
    });
    this.upstream = new Upstream({ kernel, desk, seed, plan, rules, figures });
    const { upstream } = this;
    this.host = new ServedHost({
      scenario,
      plan,
      kernel,
      desk,
      files,
      upstream,
      rules,
      figures,
      mutant: mutant?.served,
    });
    const { host } = this;
    this.operator = new Operator({ seed, kernel, host, upstream, rules, figures });
    watch.add(this.trace, {
      crashed: () => {
        figures.commandCrashes++;
      },
      sent: ({ endpoint }) => {
        if (endpoint === "generate") figures.paidRequests++;
      },
      replied: ({ endpoint, answer, reply }) => {
        if (endpoint === "generate" && answer && reply?.kind !== "answer") figures.repliesLost++;
      },
    });
    this.machine = {
      kernel,
      disk: new MemoryDisk(now),
      accounts: this.databases.accounts(),
      desk,
      watch,
      lanes: new SharedLanes(),
      seed,
      wall,
      processes: [],
      effectsMax,
    };
    this.wire = new Wire(kernel, host, desk, seed, watch, scenario.tellsTime);
  }

  async run(): Promise<void> {
    const { kernel, scenario } = this;
    // What is loaded when it is first needed would be waited for only then.
    await import("file-type");
    await this.host.start();
    let isOver = false;
    void this.operator.work(() => isOver).catch((error: unknown) => kernel.fail(error));
    void this.lives().then(
      () => {
        isOver = true;
      },
      (error: unknown) => kernel.fail(error),
    );
    const end = await kernel.run(() => isOver, beginning + scenario.daysMax * dayMs);
    if (end !== "ended") throw new Violation("liveness", `it is ${end}: ${await this.standing()}`);
    const listed = await this.listed();
    for (const state of listed.values()) this.ended.set(state, (this.ended.get(state) ?? 0) + 1);
    this.figures.held = this.ended.get("held") ?? 0;
    const { store, jobs } = this.workspace;
    auditServed({
      listed,
      upstream: this.upstream,
      host: this.host,
      disk: this.machine.disk,
      folder: jobs[0]?.folder ?? "",
      balance: scenario.balance,
      spendings: await Promise.all((await store.runs()).map(({ id }) => store.spending(id))),
    });
  }

  close(violation: Violation | null) {
    const { machine, trace, ended, figures } = this;
    for (const process of machine.processes) process.die();
    this.files.isHalted = false;
    this.host.close();
    this.files.close();
    this.databases.close();
    const { reached, faults, hash, tail } = trace;
    const ms = machine.kernel.now() - beginning;
    const effects = machine.desk.effectCount;
    return { violation, hash, effects, ms, reached, faults, ended, fleet: noCounts(), served: figures, tail };
  }

  /** The command until nothing goes on by itself; whenever the service has done all it has, once more. */
  private async lives(): Promise<void> {
    const isBusy = () => this.host.records?.journal.open().length !== 0;
    for (let round = 0; round < roundsMax && (round < 2 || (await this.isOpen())); round++) {
      await this.command(round === 0 ? this.scenario : { ...this.scenario, again: "resume" });
      while (isBusy()) await this.kernel.sleep(lookMs);
    }
  }

  private async isOpen(): Promise<boolean> {
    const states = [...(await this.listed()).values()];
    return states.some((state) => state !== "archived" && state !== "failed" && state !== "held");
  }

  private command(scenario: Scenario): Promise<void> {
    const { machine, workspace, mutant, host, wire } = this;
    const network = { wire, files: host, bucket: null };
    const approved = new Set<string>();
    return live({
      machine,
      workspace,
      scenario,
      network,
      service: host,
      mutant,
      approved,
      fleet: noCounts(),
    });
  }

  private async standing(): Promise<string> {
    const open = this.host.records?.journal.open() ?? [];
    const jobs = open.map(({ taskId, stage, note }) => `${taskId} ${stage} (${note})`);
    const items = [...(await this.listed())].map(([item, state]) => `${item} ${state}`);
    return [...jobs, ...items].join(", ");
  }

  private async listed(): Promise<Map<string, ItemState>> {
    const { workspace } = this;
    const items = await workspace.store.itemsOf(workspace.jobs[0]?.name ?? "");
    return new Map(items.map(({ id, state }) => [itemNumbered(workspace, id), state]));
  }
}
