import { jobFolder } from "../../../src/archive/disk/names.js";
import { openTemporary } from "../../../src/archive/disk/temporary.js";
import type { Archive } from "../../../src/archive/save.js";
import { openHandOut } from "../../../src/fleet/hand-out.js";
import type { WorkerEntry } from "../../../src/fleet/job.js";
import type { Queue } from "../../../src/fleet/queue.js";
import { Worker } from "../../../src/fleet/worker.js";
import type { Saves } from "../../../src/job/run/outputs.js";
import { type Machine, Process } from "../machine.js";
import type { Life } from "../person.js";
import { storeLooks } from "../remembering.js";
import {
  archiveOf,
  type Ending,
  execute,
  type FleetSide,
  log,
  type Network,
  type Parts,
  partsOf,
  type SavesOptions,
  swapped,
} from "../runner.js";
import type { FleetPlan, Scenario } from "../scenario.js";
import { SharedLanes } from "../shared-lanes.js";
import type { Job } from "../workspace.js";
import { origin } from "../workspace.js";
import { Link } from "./link.js";
import type { Lock } from "./lock.js";
import type { SimulatedQueue } from "./queue.js";

/** What all hosts of a fleet share. */
export interface Fleet {
  life: Life;
  plan: FleetPlan;
  queue: SimulatedQueue;
  lock: Lock;
  links: Map<object, Link>;
}

/** Methods of the queue that only look. */
const queueLooks = ["workers", "load"] as const;

/** A host of the fleet. Lanes are files of each. */
export class Host {
  private readonly machine: Machine;

  constructor(
    private readonly fleet: Fleet,
    /** From 0. */
    readonly number: number,
  ) {
    this.machine = { ...fleet.life.machine, lanes: new SharedLanes() };
  }

  /** Begins a process on this host. */
  start(): Program {
    const { workspace } = this.fleet.life;
    return new Program(this.fleet, this.number, new Process(this.machine, workspace.number, 0));
  }
}

/** One process of a fleet: the wiring of `src/job`, with what lies between it and the world. */
export class Program implements FleetSide {
  readonly link: Link;
  private readonly within: (wait: () => Promise<void>) => Promise<void>;

  constructor(
    private readonly fleet: Fleet,
    private readonly host: number,
    readonly process: Process,
  ) {
    this.link = new Link(process, fleet.lock);
    fleet.links.set(process, this.link);
    this.within = (wait) => process.asleep(wait);
  }

  /** The run's side. */

  /** As `run` or `resume` does; "locked" if another process has the lock. */
  async buy(job: Job, again: Scenario["again"]): Promise<Ending | "locked"> {
    const { process, link, fleet } = this;
    const { workspace, scenario, mutant } = fleet.life;
    try {
      const session = await link.ask("lock.take", () =>
        process.effect("lock.take", [], async () => {
          link.session = fleet.lock.take(process);
          return link.session;
        }),
      );
      if (session === null) return "locked";
      const ending = await execute(
        process,
        workspace,
        job,
        { ...scenario, again },
        this.network,
        mutant,
        null,
        this,
      );
      if (ending.kind === "ended" && job.run !== null) await this.close(job.run.id);
      return ending;
    } finally {
      if (process.isAlive()) this.letGo();
    }
  }

  /** The run has ended, and its process may go on as a worker. */
  private letGo(): void {
    const { process, link, fleet } = this;
    process.machine.lanes.close(process);
    if (link.session !== null) fleet.lock.free(link.session);
    link.session = null;
  }

  parts(parts: Parts): Parts {
    const { link } = this;
    const { download, send } = parts;
    return {
      ...parts,
      store: link.port("store", parts.store, { looks: storeLooks }),
      accounts: link.port("accounts", parts.accounts),
      send: async (request, signal) => {
        await link.pass(`send.${request.endpoint}`, (wait) => wait());
        return send(request, signal);
      },
      download: async (url, options) => {
        await link.pass("download", this.within);
        return download(url, options);
      },
    };
  }

  spendLog: FleetSide["spendLog"] = (own) => this.link.port("spendLog", own);

  /** Files share the lines of an index and the sync of a folder: who waited for another's, held up here, would stop time. */
  archiveDisk: FleetSide["archiveDisk"] = (disk) => {
    const { append, syncFolder } = disk;
    return { ...this.link.disk(disk, this.within), append, syncFolder };
  };

  async openSaves({ parts, archive, run, onOffer }: SavesOptions): Promise<Saves> {
    const { process, fleet } = this;
    const { clock } = process;
    const disk = this.link.disk(parts.disk, (wait) => wait());
    const working = this.working(archive);
    await parts.store.setRun(run.id, { state: "running", exit: null, endedAt: null });
    const queue = this.openQueue();
    const folder = jobFolder(run);
    await disk.makeFolder(folder);
    const proof = await openTemporary(disk, folder, `fleet ${run.id} ${this.host} ${clock.now()}`);
    const { outFolder } = run;
    const worker =
      fleet.plan.works && this.host === 0
        ? new Worker({
            queue,
            outFolder,
            disk,
            clock,
            log,
            archiveFor: () => fleet.life.mutant?.receives?.(working) ?? working,
            entry: { ...this.entry, does: "run" },
          })
        : null;
    await worker?.start();
    const handOut = await openHandOut({
      queue,
      archive: working,
      outFolder,
      clock,
      log,
      onOffer,
      bucket: null,
      proof: proof.path.slice(folder.length + 1),
      hasProof: async () => (await disk.size(proof.path)) !== null,
      baseUrl: origin,
      startWorker: null,
    });
    return {
      save: (request, signal = new AbortController().signal) => handOut.save(request, signal),
      offered: () => handOut.offered(),
      async close() {
        await worker?.drain(AbortSignal.abort("ended"));
        await handOut.close();
        await queue.close();
        await proof.abandon();
        await working.close();
      },
    };
  }

  /** As the end of a run does. */
  private async close(run: number): Promise<void> {
    const { store } = this.ownParts();
    const { planned, submitting, processing, ready, unknown, overdue } = await store.counts(run);
    const open = planned + submitting + processing + ready + unknown + overdue;
    await store.setRun(run, {
      state: open > 0 ? "interrupted" : "finished",
      endedAt: this.process.clock.now(),
    });
  }

  /** The worker's side. */

  openWorker(): Worker {
    const parts = this.ownParts();
    const archive = this.working(archiveOf(this.process, { ...parts, disk: this.archiveDisk(parts.disk) }));
    const { workspace, mutant } = this.fleet.life;
    return new Worker({
      queue: this.openQueue(),
      outFolder: workspace.outFolder,
      archiveFor: () => mutant?.receives?.(archive) ?? archive,
      disk: this.link.disk(parts.disk, (wait) => wait()),
      clock: this.process.clock,
      log,
      entry: { ...this.entry, does: "standby" },
    });
  }

  /** A run whose process is gone: it is on record as running, and nobody has the lock. */
  async orphanedRun() {
    const { store } = this.ownParts();
    const running = async () => (await store.runs()).findLast(({ state }) => state === "running");
    if ((await running()) === undefined || this.fleet.lock.isTaken()) return null;
    return (await running()) ?? null;
  }

  private ownParts(): Parts {
    const { workspace, mutant = {} } = this.fleet.life;
    return partsOf(this.process, workspace, this.network, mutant, this);
  }

  private get network(): Network {
    const { wire, files, bucket } = this.fleet.life.network;
    return { send: wire.from(this.process), download: files.to(this.within), bucket };
  }

  private get entry(): Omit<WorkerEntry, "busy" | "done" | "does"> {
    const { downloads } = this.fleet.plan;
    return { host: `host-${this.host}`, pid: this.fleet.links.size, version: "0.0.0", downloads };
  }

  /** Virtual time stands still while files are looked into. */
  private working(archive: Archive): Archive {
    const { process } = this;
    return {
      ...archive,
      save: (request, signal) => process.work(() => archive.save(request, signal)),
      receive: (request, signal) => process.work(() => archive.receive(request, signal)),
      known: (request) => process.work(() => archive.known(request)),
      place: (request, received) => process.work(() => archive.place(request, received)),
      close: () => process.work(() => archive.close()),
    };
  }

  private openQueue(): Queue {
    const { process, link, fleet } = this;
    const { kernel } = process.machine;
    const own = fleet.queue.connect();
    const gated = Object.entries(own).map(
      ([name, act]: [string, (...values: unknown[]) => Promise<unknown>]) => {
        const isLook = (queueLooks as readonly string[]).includes(name);
        const call = (...values: unknown[]) =>
          link.askQueue(`queue.${name}`, () =>
            isLook
              ? process.look(() => act(...values))
              : process.effect(`queue.${name}`, values, () => act(...values)),
          );
        return [name, call];
      },
    );
    const queue: Queue = {
      ...(Object.fromEntries(gated) as unknown as Queue),
      onNews: (of, ring) =>
        own.onNews(of, () => void kernel.schedule(kernel.now() + 5, () => process.isAlive() && ring())),
      close: own.close,
    };
    return swapped(queue, fleet.life.mutant?.queue, process);
  }
}
