import type { WorldFault, WorldRequest } from "../../src/sandbox/answers/answers.js";
import { type SandboxReply, written } from "../../src/sandbox/answers/reply.js";
import type { TaskRecord } from "../../src/sandbox/state/state.js";
import { keyHash, toMicro } from "../../src/sandbox/state/state.js";
import { allSwitches } from "../../src/sandbox/state/switches.js";
import { withOutputs } from "../../src/sandbox/world/generate.js";
import { World } from "../../src/sandbox/world/world.js";
import { chance } from "./chance.js";
import { Ledger } from "./ledger.js";
import { models } from "./models.js";
import type { OtherPrice } from "./other-price.js";
import type { Scenario } from "./scenario.js";

export const userId = "00000000-0000-4000-8000-000000000001";
export const ownKey = `svc_${"1".repeat(32)}`;
const otherKey = `svc_${"2".repeat(32)}`;

/** The service at the other end of the wire: the sandbox's world over books that the auditor can read. */
export class SimulatedService {
  readonly ledger = new Ledger();
  readonly world: World;
  /** What single models are charged in place of the listed price. */
  private readonly prices: Record<string, number>;

  constructor(
    scenario: Scenario,
    private readonly now: () => number,
  ) {
    const switches = allSwitches(scenario.switches);
    this.prices = switches.price.models;
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
    this.world = new World(
      {
        models: new Map(withOutputs([...models.values()], switches).map((model) => [model.key, model])),
        taskMs: scenario.taskMs,
        inputRoot: undefined,
        secret: "secret",
        origin: () => "https://files.example",
        switches,
      },
      this.ledger,
      chance(scenario.seed, "world"),
    );
  }

  /** One request, as it arrives, with the task that it led to. */
  api(request: WorldRequest): { answer: SandboxReply; made: TaskRecord | null } {
    const { response, changes } = this.world.apply(this.now(), request);
    this.ledger.commit(changes);
    const made = changes.find((change) => change.kind === "task created");
    return { answer: written(response), made: made ? (this.ledger.task(made.task.id) ?? null) : null };
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

export function apiRequest(
  method: string,
  address: string,
  body: string | undefined,
  fault?: WorldFault,
  key = ownKey,
): WorldRequest {
  const [path = "", query = ""] = address.split("?");
  return {
    method,
    path,
    query: Object.fromEntries(new URLSearchParams(query)),
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: body ?? null,
    ...(fault ? { fault } : {}),
  };
}
