import { describe, expect, it } from "vitest";
import { allSwitches, type SwitchSettings } from "../../src/service/state/switches.js";
import { InProcess, type InProcessOptions, picture } from "./in-process.js";

const open = (switches: SwitchSettings, options: InProcessOptions = {}) =>
  new InProcess({ ...options, switches });
const failing = { ...picture, prompt: "A fox [[provider-error]]" };

/** Balance and use of the key, as GET me shows them. */
const credits = (world: InProcess) => {
  const { balance, used_this_key } = world.me().credits;
  return [balance, used_this_key];
};

describe("switches", () => {
  it("are complete with their defaults, and refuse what no switch is called or can be", () => {
    expect(allSwitches({ limiter: { kind: "token-bucket" } }).limiter).toMatchObject({
      countsRejected: false,
    });
    expect(() => allSwitches({ limitr: {} } as SwitchSettings)).toThrow("limitr");
    expect(() => allSwitches({ urlMs: 0 })).toThrow("urlMs");
  });
});

describe("a refund", () => {
  it("is booked at the task's end, and lowers what the key has used", () => {
    const world = open({});
    world.generate(failing);
    world.clock.advance(999);
    expect(credits(world)).toEqual([96, 4]);
    world.clock.advance(1);
    expect(credits(world)).toEqual([100, 0]);
    expect(credits(world)).toEqual([100, 0]);
  });

  it("may leave what the key has used where it was", () => {
    const world = open({ refund: { lowersUsed: false } });
    world.generate(failing);
    world.clock.advance(1_000);
    expect(credits(world)).toEqual([100, 4]);
  });

  it("may come some time after the end", () => {
    const world = open({ refund: { at: "delayed", delayMs: 30_000 } });
    world.generate(failing);
    world.clock.advance(30_999);
    expect(credits(world)).toEqual([96, 4]);
    world.clock.advance(1);
    expect(credits(world)).toEqual([100, 0]);
  });

  it("may come only when the failed task is polled, and then once", () => {
    const world = open({ refund: { at: "seen" } });
    const id = world.generate(failing).body.task_id;
    world.task(id);
    world.clock.advance(100_000);
    expect(credits(world)).toEqual([96, 4]);
    world.task(id);
    world.task(id);
    expect(credits(world)).toEqual([100, 0]);
  });
});

describe("a generation that answers 500", () => {
  it("is free and leaves no task, by default", () => {
    const world = open({});
    const answer = world.generate(picture, { kind: "generation-error" });
    expect([answer.status, answer.body.error.code]).toEqual([500, "GENERATION_ERROR"]);
    expect(world.changes.map((change) => change.kind)).not.toContain("task created");
    expect(credits(world)).toEqual([100, 0]);
  });

  it("may be charged all the same", () => {
    const world = open({ errorIsCharged: true });
    expect(world.generate(picture, { kind: "generation-error" }).status).toBe(500);
    expect(credits(world)).toEqual([96, 4]);
  });
});

describe("requests_count", () => {
  const noKey = { headers: {} };
  it.each([
    // Two admitted, one of them refused for its content; one over the limit; one without a key; then GET me.
    ["all", 4],
    ["admitted", 3],
    ["succeeded", 2],
    ["generates", 1],
  ] as const)("that counts %s is %i", (requestsCount, expected) => {
    const world = open(
      { requestsCount, limiter: { kind: "token-bucket", burst: 2 } },
      { account: { plan: "Starter" } },
    );
    world.generate({ model: "no-such" });
    expect(world.send("GET", "/api/v1/models").status).toBe(200);
    expect(world.send("GET", "/api/v1/models").status).toBe(429);
    world.send("GET", "/api/v1/models", noKey);
    world.clock.advance(60_000);
    expect(world.me().api_key.requests_count).toBe(expected);
    expect(world.me().api_key.requests_count).toBe(expected + (requestsCount === "generates" ? 0 : 1));
  });
});

describe("a subscription", () => {
  const statuses = (world: InProcess) =>
    ["/api/v1/me", "/api/v1/models", "/api/v1/task/x"].map((path) => world.send("GET", path).status);
  const none = { account: { subscriptionStatus: null } } as const;

  it("is needed by all endpoints, by all but me, or by generate alone", () => {
    expect(statuses(open({ subscription: { neededFor: "all" } }, none))).toEqual([403, 403, 403]);
    expect(statuses(open({}, none))).toEqual([200, 403, 403]);
    const lenient = open({ subscription: { neededFor: "generate" } }, none);
    expect(statuses(lenient)).toEqual([200, 200, 404]);
    expect(lenient.generate(picture).body.error.code).toBe("SUBSCRIPTION_REQUIRED");
  });

  it("that is canceled is good until its period ends, or not at all", () => {
    const account = { subscriptionStatus: "canceled" } as const;
    const world = open({}, { account });
    expect(world.generate(picture).status).toBe(200);
    world.clock.advance(1_000_000);
    expect(world.generate(picture).status).toBe(403);
    expect(open({ subscription: { canceledIsGood: false } }, { account }).generate(picture).status).toBe(403);
  });

  it("that is past due is no good, or may be", () => {
    const account = { subscriptionStatus: "past_due" } as const;
    const strict = open({}, { account });
    expect(strict.generate(picture).status).toBe(403);
    expect(strict.me().subscription.status).toBe("past_due");
    expect(open({ subscription: { pastDueIsGood: true } }, { account }).generate(picture).status).toBe(200);
  });

  it("that is no good is shown with its status, or as null", () => {
    const account = { subscriptionStatus: "past_due" } as const;
    expect(open({ subscription: { shownWhenNotGood: false } }, { account }).me().subscription).toBeNull();
    expect(open({ subscription: { shownWhenNotGood: false } }).me().subscription.status).toBe("active");
  });
});

describe("a price", () => {
  const charged = (world: InProcess, body: unknown = picture) => world.generate(body).body.credits_consumed;

  it("may differ from the listed cost by a factor or for one model, and is charged as told", () => {
    const world = open({ price: { factor: 1.25, models: { "aurora-image-mini": 0.7 } } });
    expect(charged(world)).toBe(5);
    expect(charged(world, { ...picture, model: "aurora-image-mini" })).toBe(0.7);
    expect(credits(world)).toEqual([94.3, 5.7]);
    const listed = world.send("GET", "/api/v1/models").body.models;
    expect(listed[0]).toMatchObject({ model_key: "aurora-image", credits_cost: 4 });
  });

  it("is what the balance must hold", () => {
    expect(open({ price: { factor: 2 } }, { credits: 8 }).generate(picture).status).toBe(200);
    expect(open({ price: { factor: 2 } }, { credits: 7.999999 }).generate(picture).status).toBe(402);
  });

  it("may grow with the number of outputs", () => {
    const outputs = { number: 3 };
    expect(charged(open({ outputs }))).toBe(4);
    expect(charged(open({ outputs, price: { perOutput: true } }))).toBe(12);
  });
});

describe("several outputs", () => {
  const urls = (world: InProcess, body: unknown): string[] => {
    const id = world.generate(body).body.task_id;
    world.clock.advance(1_000);
    return world.task(id).body.output_urls;
  };

  it("are made by every generation, each with its own URL", () => {
    const made = urls(open({ outputs: { number: 4 } }), picture);
    expect(new Set(made.map((url) => new URL(url).pathname)).size).toBe(4);
  });

  it("may be asked for by a parameter that every model lists", () => {
    const world = open({ outputs: { number: 2, parameter: "num_outputs" } });
    const { models } = world.send("GET", "/api/v1/models").body;
    for (const model of models) {
      expect(model.parameters.at(-1)).toMatchObject({ key: "num_outputs", default: "2" });
    }
    expect(urls(world, picture)).toHaveLength(2);
    expect(urls(world, { ...picture, params: { num_outputs: "4" } })).toHaveLength(4);
    expect(world.generate({ ...picture, params: { num_outputs: "5" } }).status).toBe(400);
  });
});

describe("the URLs of a task", () => {
  const looks = (switches: SwitchSettings) => {
    const world = open(switches);
    const id = world.generate(picture).body.task_id;
    world.clock.advance(1_000);
    const first = world.task(id).body.output_urls[0];
    world.clock.advance(5_000);
    return { world, first, second: world.task(id).body.output_urls[0] };
  };
  const status = (world: InProcess, url: string) => {
    const { pathname, searchParams } = new URL(url);
    const found = world.world.file(world.clock.now(), pathname, Object.fromEntries(searchParams));
    return "refused" in found ? found.refused.status : 200;
  };

  it("are signed again at each poll, each valid for its full time", () => {
    const { world, first, second } = looks({ urlMs: 10_000 });
    expect(second).not.toBe(first);
    world.clock.advance(5_000);
    expect([status(world, first), status(world, second)]).toEqual([403, 200]);
  });

  it("may be signed once, at the task's end", () => {
    const { world, first, second } = looks({ urlMs: 10_000, signing: "once" });
    expect(second).toBe(first);
    world.clock.advance(4_999);
    expect(status(world, first)).toBe(200);
    world.clock.advance(1);
    expect(status(world, first)).toBe(403);
  });
});

describe("where the page shows no form", () => {
  it("parameters are left out as an empty list, or wholly", () => {
    const path = "/api/v1/models?include_parameters=false";
    expect(open({}).send("GET", path).body.models[0].parameters).toEqual([]);
    const absent = open({ parametersLeftOut: "absent" }).send("GET", path).body.models[0];
    expect(absent).not.toHaveProperty("parameters");
  });

  it("a filter that means nothing is refused, or ignored", () => {
    for (const filter of ["category=smell", "category=", "category=im", "include_parameters=1"]) {
      expect(open({}).send("GET", `/api/v1/models?${filter}`).status).toBe(400);
    }
    const ignored = open({ badFilter: "ignored" }).send("GET", "/api/v1/models?category=smell");
    expect(ignored.body.total).toBe(ignored.body.models.length);
    expect(ignored.body.total).toBeGreaterThan(10);
  });

  it("params that mean nothing are refused, or ignored", () => {
    const body = { ...picture, params: { aspect_ratio: "7:5", colour: "red", style: "dusk" } };
    expect(open({}).generate(body).status).toBe(400);
    const world = open({ badParams: "ignored" });
    const { input } = world.task(world.generate(body).body.task_id).body;
    expect(input).toMatchObject({ aspect_ratio: "1:1", style: "dusk" });
    expect(input).not.toHaveProperty("colour");
  });

  it.each([
    ["nested", { error: { code: "TASK_NOT_FOUND", message: "There is no such task." } }],
    ["flat", { code: "TASK_NOT_FOUND", message: "There is no such task." }],
    ["string", { error: "TASK_NOT_FOUND", message: "There is no such task." }],
  ] as const)("errors are %s", (errorShape, body) => {
    expect(open({ errorShape }).task("x").body).toEqual(body);
  });

  it("answers carry a request id of their own where it is switched on", () => {
    const world = open({ requestIds: true });
    const ids = [world.send("GET", "/api/v1/me"), world.task("x")].map((a) => a.headers["X-Request-Id"]);
    expect(new Set(ids).size).toBe(2);
    expect(ids).not.toContain(undefined);
    expect(open({}).send("GET", "/api/v1/me").headers).toEqual({});
  });
});
