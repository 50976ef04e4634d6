import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Download } from "../../../src/core/ports/send.js";
import { OwnService } from "../../../src/serve/own-service.js";
import type { WorldRequest } from "../../../src/service/answers/answers.js";
import { fileReply, type ServiceReply, written } from "../../../src/service/answers/reply.js";
import { keyHash, type TaskRecord, toMicro } from "../../../src/service/state/state.js";
import { chance } from "../chance.js";
import type { FaultDesk } from "../fault-desk.js";
import { type Kernel, ProcessClock } from "../kernel.js";
import { never } from "../machine.js";
import type { Scenario, ServedPlan } from "../scenario.js";
import { ownKey, userId } from "../service.js";
import { Violation } from "../watch.js";
import type { WiredService } from "../wire.js";
import type { ServedCounts } from "./counts.js";
import type { FilesAtOnce } from "./files-at-once.js";
import { modelsFile } from "./models.js";
import type { Records, ServedRules } from "./rules.js";
import type { Caller, Upstream } from "./upstream.js";

/** The service process has ended: nothing that it still does has an effect. */
class Ended extends Error {
  override readonly name = "Ended";
}

/** One process of the service. */
interface Life {
  isAlive: boolean;
  own: OwnService | null;
  /** Told when it ends: requests that it has not answered. */
  readonly waiting: Set<() => void>;
}

export interface HostParts {
  scenario: Scenario;
  plan: ServedPlan;
  kernel: Kernel;
  desk: FaultDesk;
  files: FilesAtOnce;
  upstream: Upstream;
  rules: ServedRules;
  figures: ServedCounts;
  /** Breaks a process of the service that has just begun. */
  mutant: ((own: OwnService) => void) | undefined;
}

/**
 * The host of the real service: it dies at an effect and is started again on the database that it has left. What was committed
 * is there, and nothing else of what it knew. Its effects are its commits and all that it asks of its providers.
 */
export class ServedHost implements WiredService {
  readonly ledger = {
    tasks: new Map<string, TaskRecord>(),
    madeFor: new Map<string, string>(),
    task: (id: string) => this.records?.state.task(id),
  };
  private readonly folder = mkdtempSync(join(memoryFolder(), "bulkgen-served-"));
  private life: Life = { isAlive: false, own: null, waiting: new Set() };
  private lives = 0;
  private working = 0;
  private isGated = true;

  constructor(private readonly parts: HostParts) {
    writeFileSync(this.file, modelsFile);
  }

  private get file(): string {
    return join(this.folder, "models.yaml");
  }

  /** What the living process has on record; null while there is none. */
  get records(): Records | null {
    const { isAlive, own } = this.life;
    return isAlive ? own : null;
  }

  /** What another process of its host does to its records, which is no effect of the service. */
  beside<Result>(act: (records: Records) => Result): Result | null {
    const { records } = this;
    if (records === null) return null;
    this.isGated = false;
    try {
      return act(records);
    } finally {
      this.isGated = true;
    }
  }

  isDown(): boolean {
    return this.records === null;
  }

  /** Real work is under way that virtual time has to wait for. */
  isWorking(): boolean {
    return this.working > 0 || (this.life.isAlive && commitsOf(this.life.own).waiting.length > 0);
  }

  async start(): Promise<void> {
    const { kernel, files, upstream, scenario, mutant } = this.parts;
    const number = this.lives++;
    const life: Life = { isAlive: true, own: null, waiting: new Set() };
    files.isHalted = false;
    this.working++;
    const caller: Caller = {
      isAlive: () => life.isAlive,
      effect: (name, act) => this.effect(life, name, act),
    };
    try {
      const own = await OwnService.open(
        {
          clock: new ProcessClock(kernel, { offsetMs: 0 }, () => life.isAlive),
          random: chance(scenario.seed, "served", number),
          folder: join(this.folder, "state"),
          file: this.file,
          kinds: upstream.kinds(caller),
          env: {},
          onNote: (note) => {
            if (life.isAlive) kernel.fail(new Violation("defect", note));
          },
        },
        () => "https://files.example",
      );
      if (number === 0) this.addAccount(own);
      this.gateCommits(life, own);
      mutant?.(own);
      life.own = own;
      this.life = life;
      // The models file and old files are not looked after: a day would be 43,200 looks.
      void own.works.resume().catch((error: unknown) => {
        if (life.isAlive) kernel.fail(error);
      });
    } finally {
      this.working--;
    }
  }

  /** One request, as it arrives. */
  api(request: WorldRequest): Promise<{ answer: ServiceReply; made: TaskRecord | null } | null> {
    return this.whileAlive(async (own) => {
      const answer = written(await own.api(request));
      const { task_id: id = "" } = request.method === "POST" ? JSON.parse(answer.body) : {};
      return { answer, made: own.state.task(id) ?? null };
    });
  }

  /** The `Download` of a process of the command. */
  to(asleep: (wait: () => Promise<void>) => Promise<void>): Download {
    let count = 0;
    return async (url, { headers }) => {
      const lot = chance(this.parts.scenario.seed, "download", url, count++);
      await asleep(() => this.parts.kernel.sleep(lot.scale(3, 800)));
      const { pathname, searchParams } = new URL(url);
      const found = await this.whileAlive((own) => own.file(pathname, Object.fromEntries(searchParams)));
      if (found === null) throw new Error("connect ECONNREFUSED");
      if (!("path" in found)) {
        const { status, body } = written(found);
        return { status, headers: {}, body: once(Buffer.from(body)) };
      }
      const file = { ...found, bytes: readFileSync(found.path) };
      const sent = fileReply(file, headers["range"], headers["if-range"]);
      const lower = Object.entries(sent.headers).map(([name, value]) => [name.toLowerCase(), value]);
      return {
        status: sent.status,
        headers: Object.fromEntries(lower),
        body: once(sent.bytes ?? Buffer.alloc(0)),
      };
    };
  }

  /** Ends everything, at the end of the simulation. */
  close(): void {
    this.end();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private whileAlive<Result>(act: (own: OwnService) => Promise<Result>): Promise<Result | null> {
    const { life } = this;
    const { own } = life;
    if (!life.isAlive || own === null) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      const end = () => resolve(null);
      life.waiting.add(end);
      act(own).then(
        (result) => {
          life.waiting.delete(end);
          if (life.isAlive) resolve(result);
        },
        (error: unknown) => {
          if (life.isAlive) reject(error);
        },
      );
    });
  }

  private async effect<Result>(life: Life, name: string, act: () => Promise<Result>): Promise<Result> {
    if (!life.isAlive) return never();
    const crash = this.parts.desk.ofEffect(name);
    if (crash?.after === false) {
      this.crash();
      return never();
    }
    const result = act().then(
      (value) => (life.isAlive ? value : never<Result>()),
      (error: unknown) => (life.isAlive ? Promise.reject(error) : never<Result>()),
    );
    if (crash === null) return result;
    result.catch(() => undefined);
    await null;
    this.crash();
    return never();
  }

  /** Each commit is an effect; those that change the journal have a name of their own. */
  private gateCommits(life: Life, own: OwnService): void {
    const { state, journal } = own;
    const transact = state.transact.bind(state);
    let isOfJournal = false;
    for (const method of ["add", "update"] as const) {
      const real = journal[method].bind(journal) as (...values: unknown[]) => void;
      journal[method] = (...values: unknown[]) => {
        isOfJournal = true;
        real(...values);
      };
    }
    state.transact = (work) => {
      if (!life.isAlive) throw new Ended();
      if (!this.isGated) return transact(work);
      let crash: ReturnType<FaultDesk["ofEffect"]> = null;
      let result: ReturnType<typeof work>;
      isOfJournal = false;
      try {
        result = transact(() => {
          const done = work();
          crash = this.parts.desk.ofEffect(isOfJournal ? "served.journal" : "served.commit");
          if (crash?.after === false) throw new Ended();
          return done;
        });
      } catch (error) {
        if (error instanceof Ended) this.crash();
        throw error;
      }
      this.parts.rules.committed(own);
      if (crash !== null) {
        this.crash();
        throw new Ended();
      }
      return result;
    };
  }

  private addAccount({ state }: OwnService): void {
    const { balance, plan } = this.parts.scenario;
    const now = this.parts.kernel.now();
    state.transact(() => {
      state.saveAccount({
        id: userId,
        email: "ada@example.invalid",
        name: null,
        balanceMicro: toMicro(balance),
        subscriptionStatus: "active",
        plan,
        creditsPerMonth: 500,
        billingInterval: "month",
        periodEnd: now + 1e12,
        cancelAtPeriodEnd: false,
        admitted: 0,
      });
      state.saveKey({ id: "key-own", accountId: userId, hash: keyHash(ownKey), name: "own", createdAt: now });
    });
  }

  private crash(): void {
    const { kernel, plan, scenario, figures } = this.parts;
    if (!this.life.isAlive) return;
    figures.serviceCrashes++;
    this.end();
    const restMs = chance(scenario.seed, "restart", this.lives).scale(1_000, plan.restartMs);
    kernel.schedule(kernel.now() + restMs, () => {
      this.start().catch((error: unknown) => kernel.fail(error));
    });
  }

  private end(): void {
    const { life } = this;
    if (!life.isAlive) return;
    life.isAlive = false;
    this.parts.files.isHalted = true;
    this.parts.upstream.hostDied();
    for (const wait of life.waiting) wait();
    commitsOf(life.own).close();
    life.own?.state.close();
  }
}

/** What of a service waits for its commit. */
function commitsOf(own: OwnService | null): { waiting: unknown[]; close(): void } {
  const { service } = own as unknown as { service: { commits: { waiting: unknown[]; close(): void } } };
  return service.commits;
}

/** Where a sync costs nothing, if there is such a place. */
function memoryFolder(): string {
  return existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
