import { catalogue } from "../../src/sandbox/catalogue/catalogue.js";
import { Pretence } from "../../src/sandbox/pretence.js";
import type { WorldFault, WorldRequest, WorldResponse } from "../../src/service/answers/answers.js";
import { inputProblem } from "../../src/service/inputs/fetch.js";
import { SqliteState } from "../../src/service/state/sqlite-state.js";
import type { AccountRecord, Change } from "../../src/service/state/state.js";
import { keyHash, toMicro } from "../../src/service/state/state.js";
import { allSwitches, type SwitchSettings } from "../../src/service/state/switches.js";
import { withOutputs } from "../../src/service/world/generate.js";
import { World } from "../../src/service/world/world.js";
import { CountingRandom, ManualClock } from "./manual-clock.js";

export interface InProcessOptions {
  switches?: SwitchSettings;
  account?: Partial<AccountRecord>;
  credits?: number;
  taskMs?: { min: number; max: number };
}

// biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every shape
export type Answered = Omit<WorldResponse, "body"> & { body: any };

/** The world on a database in memory, without a socket: two users, a key each, and somebody who calls. */
export class InProcess {
  readonly clock = new ManualClock();
  readonly state = new SqliteState(":memory:");
  readonly key = `svc_${"1".repeat(32)}`;
  readonly strangersKey = `svc_${"2".repeat(32)}`;
  readonly world: World;
  /** What the last request changed. */
  changes: Change[] = [];

  constructor(options: InProcessOptions = {}) {
    const switches = allSwitches(options.switches);
    this.addUser("ada", this.key, options);
    this.addUser("stranger", this.strangersKey, {});
    const models = new Map(withOutputs(catalogue, switches).map((model) => [model.key, model]));
    const random = new CountingRandom();
    this.world = new World(
      {
        models,
        workshop: new Pretence(models, random, options.taskMs ?? { min: 1_000, max: 1_000 }),
        inputProblem: (value) => inputProblem(value, undefined),
        secret: "secret",
        origin: () => "http://127.0.0.1:1",
        switches,
      },
      this.state,
      random,
    );
  }

  /** Sends one request; `fault` is what the script does to it. */
  send(method: string, path: string, change: Partial<WorldRequest> = {}, fault?: WorldFault): Answered {
    const { pathname, searchParams } = new URL(path, "http://world");
    const request: WorldRequest = {
      method,
      path: pathname,
      query: Object.fromEntries(searchParams),
      headers: { "x-api-key": this.key },
      body: null,
      ...change,
      ...(fault ? { fault } : {}),
    };
    return this.state.transact(() => {
      const { response, changes } = this.world.apply(this.clock.now(), request);
      this.changes = changes;
      this.state.commit(changes);
      return response;
    });
  }

  generate(body: unknown, fault?: WorldFault): Answered {
    const headers = { "x-api-key": this.key, "content-type": "application/json" };
    return this.send("POST", "/api/v1/generate", { headers, body: JSON.stringify(body) }, fault);
  }

  me(): Answered["body"] {
    return this.send("GET", "/api/v1/me").body;
  }

  task(id: string): Answered {
    return this.send("GET", `/api/v1/task/${id}`);
  }

  private addUser(name: string, key: string, { account, credits }: InProcessOptions): void {
    this.state.saveAccount({
      id: name,
      email: `${name}@example.invalid`,
      name: null,
      balanceMicro: toMicro(credits ?? 100),
      subscriptionStatus: "active",
      plan: "Enterprise",
      creditsPerMonth: 100,
      billingInterval: "month",
      periodEnd: this.clock.now() + 1_000_000,
      cancelAtPeriodEnd: false,
      admitted: 0,
      ...account,
    });
    this.state.saveKey({
      id: `key-${name}`,
      accountId: name,
      hash: keyHash(key),
      name,
      createdAt: this.clock.now(),
    });
  }
}

export const picture = { model: "aurora-image", prompt: "A lighthouse at dawn" };
