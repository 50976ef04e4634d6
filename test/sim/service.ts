import { mediaFields } from "../../src/api/inputs.js";
import type { SandboxModel } from "../../src/sandbox/catalogue/model.js";
import { Pretence } from "../../src/sandbox/pretence.js";
import type { WorldFault, WorldRequest } from "../../src/service/answers/answers.js";
import { type ServiceReply, written } from "../../src/service/answers/reply.js";
import { inputProblem } from "../../src/service/inputs/fetch.js";
import type { Change, TaskRecord } from "../../src/service/state/state.js";
import { keyHash, toMicro } from "../../src/service/state/state.js";
import { allSwitches } from "../../src/service/state/switches.js";
import { withOutputs } from "../../src/service/world/generate.js";
import { checkSignature, parseFilePath } from "../../src/service/world/signing.js";
import { World } from "../../src/service/world/world.js";
import type { SimulatedBucket } from "./bucket.js";
import { chance } from "./chance.js";
import { madeOf } from "./files.js";
import { Ledger } from "./ledger.js";
import { models } from "./models.js";
import type { OtherPrice } from "./other-price.js";
import type { Scenario } from "./scenario.js";

export const userId = "00000000-0000-4000-8000-000000000001";
export const ownKey = `svc_${"1".repeat(32)}`;
const secret = "secret";
const filesOrigin = "https://files.example";
const otherKey = `svc_${"2".repeat(32)}`;

/** The service at the other end of the wire: the sandbox's world over books that the auditor can read. */
export class SimulatedService {
  readonly ledger = new Ledger();
  readonly world: World;
  /** What single models are charged in place of the listed price. */
  private readonly prices: Record<string, number>;
  /** A request with an input that cannot be read is refused; else its task fails. */
  private readonly refusesInputs: boolean;

  constructor(
    scenario: Scenario,
    private readonly now: () => number,
    private readonly bucket: () => SimulatedBucket | null = () => null,
  ) {
    const switches = allSwitches(scenario.switches);
    this.prices = switches.price.models;
    this.refusesInputs = chance(scenario.seed, "inputs").is(0.5);
    this.ledger.addAccount({
      id: userId,
      email: "ada@example.invalid",
      name: null,
      balanceMicro: toMicro(scenario.balance),
      subscriptionStatus: "active",
      plan: scenario.plan,
      creditsPerMonth: 500,
      billingInterval: "month",
      periodEnd: now() + 1e12,
      cancelAtPeriodEnd: false,
      admitted: 0,
    });
    for (const [name, key] of [
      ["own", ownKey],
      ["other", otherKey],
    ] as const) {
      this.ledger.addKey(keyHash(key), {
        id: `key-${name}`,
        accountId: userId,
        name,
        revokedAt: null,
        requestsCount: 0,
        usedMicro: 0,
      });
    }
    const listed = new Map(withOutputs(modelsOf(scenario), switches).map((model) => [model.key, model]));
    const random = chance(scenario.seed, "world");
    this.world = new World(
      {
        models: listed,
        workshop: new Pretence(listed, random, scenario.modelMs === undefined ? scenario.taskMs : undefined),
        inputProblem: (value) => inputProblem(value, undefined),
        secret,
        origin: () => filesOrigin,
        switches,
        announced: scenario.repeats ? announcement : null,
      },
      this.ledger,
      random,
    );
  }

  /** One request, as it arrives, with the task that it led to. */
  api(request: WorldRequest): { answer: ServiceReply; made: TaskRecord | null } {
    const isRead = request.body === null || !request.body.includes('_url":') || this.reads(request.body);
    const given = isRead || !this.refusesInputs ? request : { ...request, body: withoutInputs(request.body) };
    const { response, changes } = this.world.apply(this.now(), given);
    for (const change of changes) decide(change, isRead);
    this.ledger.commit(changes);
    const made = changes.find((change) => change.kind === "task created");
    return { answer: written(response), made: made ? (this.ledger.task(made.task.id) ?? null) : null };
  }

  /**
   * The output that an address names, however old it is; null for one that the service has never given, and that nobody
   * has published it at.
   */
  output(
    address: string,
    now: number,
  ): { task: TaskRecord; number: number; isExpired: boolean; expires: number } | null {
    if (!URL.canParse(address)) return null;
    const published = this.bucket()?.at(address) ?? null;
    if (published !== null) {
      const { expires } = published;
      const made = this.madeWith(published.sha256);
      return made && { ...made, isExpired: expires <= now, expires };
    }
    const { origin, pathname, searchParams } = new URL(address);
    const verdict = checkSignature(secret, pathname, Object.fromEntries(searchParams), now);
    const name = parseFilePath(pathname);
    const task = name && this.ledger.task(name.taskId);
    if (origin !== filesOrigin || verdict === "wrong" || !task) return null;
    const expires = Number(searchParams.get("expires"));
    return { task, number: name.number, isExpired: verdict === "expired", expires };
  }

  private madeWith(hash: string): { task: TaskRecord; number: number } | null {
    for (const task of this.ledger.tasks.values())
      for (let number = 1; number <= task.outputs.length; number++)
        if (madeOf(task, number).sha256 === hash) return { task, number };
    return null;
  }

  /** Whether all inputs of a request can be read as it arrives. */
  private reads(body: string): boolean {
    const now = this.now();
    return mediaFields.every((field) => {
      const address = (JSON.parse(body) as Record<string, string | undefined>)[field];
      const published = this.bucket()?.at(address ?? "") ?? null;
      if (published !== null) return now < published.expires;
      const found = address === undefined ? null : this.output(address, now);
      if (found === null) return address === undefined;
      return !found.isExpired && (found.task.goneAt === null || now < found.task.goneAt);
    });
  }

  /** From now on one generation of that model is charged so much. */
  charge({ model, credits }: Pick<OtherPrice, "model" | "credits">): void {
    this.prices[model] = credits;
  }

  /** Somebody else's POSTs on the account. */
  foreignPosts(count: number, sameKey: boolean): void {
    const body = JSON.stringify({ model: "sketch", prompt: "somebody else's" });
    if (sameKey) this.ledger.foreignBursts.push(count);
    for (let post = 0; post < count; post++) {
      this.api(apiRequest("POST", "/api/v1/generate", body, undefined, sameKey ? ownKey : otherKey));
    }
  }
}

const announcement = {
  name: "simulated",
  idempotency_ms: 7 * 24 * 3_600_000,
  inputs: false,
  cancel: false,
  queue: false,
  providers: [],
};

function modelsOf({ modelMs }: Scenario): SandboxModel[] {
  return [...models.values()].map((model) => ({ ...model, taskMs: modelMs?.[model.key] ?? model.taskMs }));
}

/** The same request with inputs that the service refuses. */
function withoutInputs(body: string | null): string {
  const given = JSON.parse(body ?? "{}") as Record<string, string>;
  const refused = mediaFields.filter((field) => field in given).map((field) => [field, "ftp://unreadable"]);
  return JSON.stringify({ ...given, ...Object.fromEntries(refused) });
}

/** Whoever serves the world decides about tasks with inputs, once it has read these. */
function decide(change: Change, isRead: boolean): void {
  if (change.kind !== "task created" || change.task.outcome !== null) return;
  change.task.outcome = isRead ? "completed" : "failed";
  if (!isRead) change.task.error = "An input cannot be read.";
}

export function apiRequest(
  method: string,
  address: string,
  body: string | undefined,
  fault?: WorldFault,
  key = ownKey,
  repeatKey?: string,
): WorldRequest {
  const [path = "", query = ""] = address.split("?");
  return {
    method,
    path,
    query: Object.fromEntries(new URLSearchParams(query)),
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...(repeatKey === undefined ? {} : { "idempotency-key": repeatKey }),
    },
    body: body ?? null,
    ...(fault ? { fault } : {}),
  };
}
