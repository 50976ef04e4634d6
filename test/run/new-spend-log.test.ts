import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { noCredits } from "../../src/core/money.js";
import type { Reply } from "../../src/core/ports/send.js";
import type { Run } from "../../src/core/ports/store.js";
import { openAccounts } from "../../src/store/accounts/accounts.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

const cut: Reply = { kind: "no_answer", reason: "other side closed" };
const settling = { ...defaultReconcile, unsettledMax: 5, wait: true, orphanCredits: noCredits };
let world: World;
beforeEach(async () => {
  world = await openWorld({ switches: { refund: { at: "delayed", delayMs: 100_000 } } });
});
afterEach(() => world.close());

/** GET me, as another program with the same key asks it. */
async function balance(): Promise<number> {
  const headers = { authorization: `Bearer ${world.sandbox.key}` };
  const answer = await fetch(`${world.sandbox.url}/api/v1/me`, { headers });
  return ((await answer.json()) as { credits: { balance: number } }).credits.balance;
}

/** Goes on until so many are archived. */
async function untilArchived(run: Run, count: number): Promise<void> {
  const over = new AbortController();
  world.onProgress = ({ counts }) => {
    if (counts.archived >= count) over.abort();
  };
  await carryOn(world, run, { lanes: 1, reads: true, interrupt: over.signal });
  world.onProgress = null;
}

describe.each([
  ["stays with it", false],
  ["was left behind on another machine", true],
])("a run goes on with an open task while its account's spend log %s", (_, isMoved) => {
  test("P2: what the task gives back does not hide the charge of a lost request", async () => {
    const run = await start(world, [picture("fails", 1, { prompt: "[[moderation]] a long one" })]);
    let path = "";
    let isOpen = true;
    let posts = 0;
    const over = new AbortController();
    world.tamper = async (request, pass) => {
      if (request.startsWith("POST")) {
        posts++;
        const reply = await pass();
        if (posts === 1 && reply.kind === "answer") {
          path = `/api/v1/task/${(JSON.parse(reply.body) as { task_id: string }).task_id}`;
          over.abort();
        }
        if (posts !== 3) return reply;
        // Its answer is lost; while that is waited for, the first task fails, and its credits come back.
        isOpen = false;
        world.clock.advance(119_000);
        return cut;
      }
      if (request !== `GET ${path}` || !isOpen) return pass();
      const body = { status: "processing", output_urls: null, error: null, credits_consumed: 4 };
      const headers = { date: new Date(world.clock.monotonic()).toUTCString() };
      return { kind: "answer", status: 200, headers, body: JSON.stringify(body) };
    };
    await carryOn(world, run, { lanes: 1, reads: true, interrupt: over.signal });
    expect(await states(world, run)).toEqual({ fails: "processing" });
    if (isMoved) {
      world.clock.advance(1_000);
      await world.accounts.close();
      world.accounts = openAccounts(":memory:", world.clock);
    }
    await world.store.add(run.id, [picture("p1", 2)]);
    await untilArchived(run, 1);
    await world.store.add(run.id, [picture("p2", 3)]);
    await carryOn(world, run, { lanes: 1, reads: true, settling });
    expect({ posts, balance: await balance(), states: await states(world, run) }).toEqual({
      posts: 3,
      balance: 492,
      states: { fails: "failed", p1: "archived", p2: "held" },
    });
  });
});

describe.each([
  ["that is new", false, "archived", 3],
  ["that another program has used before", true, "held", 2],
])("a key %s", (_, isUsed, state, most) => {
  test("P5: what a lost answer that never reached the service comes to on the first day", async () => {
    if (isUsed) await balance();
    let posts = 0;
    world.tamper = async (request, pass) => {
      if (!request.startsWith("POST")) return pass();
      posts++;
      return posts === 2 ? cut : pass();
    };
    const run = await start(world, [picture("p1", 1)]);
    await untilArchived(run, 1);
    await world.store.add(run.id, [picture("p2", 2)]);
    await carryOn(world, run, { lanes: 1, reads: true, settling });
    expect({ posts, states: await states(world, run) }).toEqual({
      posts: most,
      states: { p1: "archived", p2: state },
    });
  });
});
