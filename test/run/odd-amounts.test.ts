import { afterEach, describe, expect, test } from "vitest";
import { credits } from "../../src/core/money.js";
import type { Reply } from "../../src/core/ports/send.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

let world: World;

afterEach(() => world.close());

const pictures = (count: number) => Array.from({ length: count }, (_, at) => picture(`p${at + 1}`, at + 1));

/** Answers to these requests come with these fields, `undefined` for none. */
function tells(which: string, fields: object): void {
  world.tamper = async (request, pass) => {
    const reply = await pass();
    if (!request.includes(which) || reply.kind !== "answer") return reply;
    return { ...reply, body: JSON.stringify({ ...JSON.parse(reply.body), ...fields }) };
  };
}

describe("a service that returns impossible amounts", () => {
  test.each([
    ["POST", "a balance", { credits_remaining: 1e10 }],
    ["POST", "a charge", { credits_consumed: -1e300 }],
    ["/task/", "a charge", { credits_consumed: 1e10 }],
  ])("P4: %s with %s beyond all bounds loses no task", async (request, _, fields) => {
    world = await openWorld();
    const run = await start(world, pictures(2));
    tells(request, fields);
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived" });
    expect(await world.store.spending(run.id)).toMatchObject({ charged: credits(8) });
  });

  test.each(["POST", "/task/"])(
    "P7: a charge below 0, told by %s, makes no room under the cap",
    async (request) => {
      world = await openWorld();
      const run = await start(world, pictures(5));
      tells(request, { credits_consumed: -4 });
      const { stops } = (await carryOn(world, run, { lanes: 1, maxCredits: credits(8) })).gate;
      expect(stops.map(({ kind }) => kind)).toEqual(["cap"]);
      expect(posts()).toBe(2);
    },
  );

  test("P7: a task that does not say what it cost does not come free of the cap", async () => {
    world = await openWorld();
    const run = await start(world, pictures(5));
    tells("/task/", { credits_consumed: undefined });
    const { stops } = (await carryOn(world, run, { maxCredits: credits(8) })).gate;
    expect(stops.map(({ kind }) => kind)).toEqual(["cap"]);
    expect(Object.values(await states(world, run)).toSorted()).toEqual([
      "archived",
      "archived",
      "planned",
      "planned",
      "planned",
    ]);
  });
});

const lost: Reply = { kind: "no_answer", reason: "other side closed" };
const refused: Reply = { kind: "answer", status: 402, headers: {}, body: '{"code":"INSUFFICIENT_CREDITS"}' };
const isPaid = (request: string) => request.startsWith("POST");
const posts = () => world.sent.filter(isPaid).length;

type Fields = Readonly<Record<"credits" | "api_key", object>>;

/** The last of so many paid requests is answered like this; after `well` readings, GET me comes with these fields. */
function tellsOfAccount(fields: Partial<Fields>, [paid, answer]: [number, Reply], well: number): void {
  let [sent, read] = [0, 0];
  world.tamper = async (request, pass) => {
    if (isPaid(request) && ++sent === paid) return answer;
    const reply = await pass();
    if (!request.includes("/me") || reply.kind !== "answer" || ++read <= well) return reply;
    const me = JSON.parse(reply.body) as Fields;
    const changed = {
      credits: { ...me.credits, ...fields.credits },
      api_key: { ...me.api_key, ...fields.api_key },
    };
    return { ...reply, body: JSON.stringify({ ...me, ...changed }) };
  };
}

describe("an account that returns impossible amounts", () => {
  test.each([
    ...[null, undefined, -3, "twelve", 1e10, 1e300, []].map((used) => ({ credits: { used_this_key: used } })),
    ...[null, undefined, -3, "twelve", 1.5, 1e300].map((count) => ({ api_key: { requests_count: count } })),
  ])("P2 P5: proves nothing by %j, and ends no run with an error", async (fields) => {
    world = await openWorld();
    const run = await start(world, pictures(3));
    tellsOfAccount(fields, [3, lost], 1);
    for (let times = 0; times < 2; times++) {
      await carryOn(world, run, { lanes: 1, reads: true });
      expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived", p3: "unknown" });
    }
    expect(posts()).toBe(3);
  });

  test("P5: says why nothing is submitted, and what was expected", async () => {
    world = await openWorld();
    const run = await start(world, pictures(3));
    tellsOfAccount({ credits: { used_this_key: "twelve" } }, [2, lost], 1);
    const { stops } = (await carryOn(world, run, { lanes: 1, reads: true })).gate;
    expect(stops).toEqual([
      {
        kind: "unread",
        message: expect.stringMatching(
          /the key's counters cannot be read \(GET \/api\/v1\/me: expected .* credits\.used_this_key/,
        ),
      },
    ]);
  });

  test.each([1e10, -3])("P5: who never told but %d leaves a lost request to a person", async (used) => {
    world = await openWorld();
    const run = await start(world, pictures(2));
    tellsOfAccount({ credits: { used_this_key: used } }, [2, lost], 0);
    await carryOn(world, run, { lanes: 1, reads: true });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "held" });
    expect((await world.store.items(run.id))[1]?.note).toMatch(/were not read before it was sent/);
  });

  test.each([1e10, 1e300])("a run that waits for credits continues with %d of them", async (balance) => {
    world = await openWorld();
    const run = await start(world, pictures(2));
    tellsOfAccount({ credits: { balance } }, [1, refused], 0);
    await carryOn(world, run, { onInsufficient: "wait" });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived" });
  });
});
