import { afterEach, describe, expect, test } from "vitest";
import { fingerprint } from "../../src/api/key.js";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { isNews, reconcile } from "../../src/core/charges/verdict.js";
import { credits, noCredits, times } from "../../src/core/money.js";
import type { Reply } from "../../src/core/ports/send.js";
import type { Run } from "../../src/core/ports/store.js";
import type { RunSettings } from "../../src/run/ports.js";
import type { SandboxOptions } from "../../src/sandbox/sandbox.js";
import { openAccounts } from "../../src/store/accounts/accounts.js";
import type { SpendLog } from "../../src/store/accounts/spend-log.js";
import { judgementOf } from "../store/judgement-fixture.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

let world: World;

afterEach(() => world.close());

async function open(options: Partial<SandboxOptions> = {}): Promise<void> {
  world = await openWorld(options);
}

const pictures = (count: number) => Array.from({ length: count }, (_, at) => picture(`p${at + 1}`, at + 1));
const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;
const cut: Reply = { kind: "no_answer", reason: "other side closed" };

/** The nth POSTs (from 1) lose their answer, or do not even arrive. */
function loses(which: readonly number[], how: "answer" | "request" | Reply): void {
  let count = 0;
  world.tamper = async (request, pass) => {
    if (!request.startsWith("POST") || !which.includes(++count)) return pass();
    if (how === "answer") await pass();
    return typeof how === "string" ? cut : how;
  };
}

/** Hears what is asked of the real spend log. */
function listenIn(heard: (spendLog: SpendLog) => Partial<SpendLog>): void {
  const real = world.accounts.spendLog;
  world.accounts.spendLog = (owner) => {
    const spendLog = real(owner);
    return { ...spendLog, ...heard(spendLog) };
  };
}

const settling = (change: Partial<RunSettings["settling"]> = {}): Partial<RunSettings> => ({
  settling: { ...defaultReconcile, unsettledMax: 5, wait: false, orphanCredits: noCredits, ...change },
});

/** Credits of the sandbox's account that are gone. */
async function spent(): Promise<number> {
  const answer = await fetch(`${world.sandbox.url}/api/v1/me`, {
    headers: { authorization: `Bearer ${world.sandbox.key}` },
  });
  const { credits: money } = (await answer.json()) as { credits: { balance: number } };
  return 500 - money.balance;
}

async function notes(run: Run): Promise<(string | null)[]> {
  return (await world.store.items(run.id)).filter(({ state }) => state === "held").map(({ note }) => note);
}

describe("a request whose answer was lost", () => {
  test("P5: that was charged is found with the first reading, is held with its price, and is never sent again", async () => {
    await open();
    const run = await start(world, pictures(4));
    loses([2], "answer");
    await carryOn(world, run, { lanes: 1, reads: true });
    expect(Object.values(await states(world, run)).toSorted()).toEqual([
      "archived",
      "archived",
      "archived",
      "held",
    ]);
    expect(await notes(run)).toEqual([
      expect.stringMatching(
        /^charged, but its task id was lost \(no answer: other side closed\); the service counts /,
      ),
    ]);
    await carryOn(world, run, { reads: true });
    expect(posts()).toBe(4);
  });

  test("P5: the key's counters are read before anything else is submitted", async () => {
    await open();
    const run = await start(world, pictures(4));
    loses([2], "answer");
    await carryOn(world, run, { lanes: 1, reads: true });
    const third = world.sent.flatMap((request, at) => (request.startsWith("POST") ? [at] : []))[2];
    const second = world.sent.flatMap((request, at) => (request.startsWith("POST") ? [at] : []))[1];
    expect(world.sent.slice(second, third)).toContain("GET /api/v1/me");
  });

  test("P2 P5: that never arrived is sent again once two readings have proven it, and paid once", async () => {
    await open();
    const run = await start(world, pictures(3));
    loses([2], "request");
    const began = world.clock.now();
    await carryOn(world, run, { lanes: 1, reads: true, ...settling({ wait: true }) });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived", p3: "archived" });
    expect(posts()).toBe(4);
    expect(world.clock.now() - began).toBeGreaterThan(15 * 60_000);
    expect(await spent()).toBe(12);
  });

  test("P5: a reading that becomes due while a turn is deciding is not slept through", async () => {
    await open();
    const run = await start(world, pictures(3));
    loses([2], "request");
    world.clock.earlyMs = 1;
    world.onProgress = () => world.clock.advance(2);
    const began = world.clock.now();
    await carryOn(world, run, { lanes: 1, reads: true, ...settling({ wait: true }) });
    expect(Object.values(await states(world, run))).toEqual(["archived", "archived", "archived"]);
    expect(world.clock.now() - began).toBeLessThan(16 * 60_000);
  });

  test("P5: the spend log is judged again only after something was written to it", async () => {
    await open();
    const run = await start(world, pictures(3));
    loses([2], "request");
    const judged: number[] = [];
    listenIn((spendLog) => ({
      evidence: async (settings) => {
        judged.push(await spendLog.seq());
        return spendLog.evidence(settings);
      },
    }));
    await carryOn(world, run, { lanes: 1, reads: true, ...settling({ wait: true }) });
    expect(Object.values(await states(world, run))).toEqual(["archived", "archived", "archived"]);
    expect(judged.length).toBeGreaterThan(3);
    expect(judged).toEqual([...new Set(judged)]);
  });

  test("P5: where judging takes long, polls share a judgement, and the run ends with none owed", async () => {
    await open();
    const run = await start(world, pictures(40));
    loses([2], "request");
    const judged: number[] = [];
    listenIn((spendLog) => ({
      evidence: async (settings) => {
        judged.push(await spendLog.seq());
        // As it takes with very many paid requests since the last clean reading.
        world.clock.advance(1_500);
        return spendLog.evidence(settings);
      },
    }));
    const { ports } = await carryOn(world, run, { lanes: 8, polls: 8, reads: true });
    const counted = Object.values(await states(world, run));
    expect(counted.filter((state) => state === "archived")).toHaveLength(39);
    expect(judged.length).toBeLessThan(20);
    expect(judged.at(-1)).toBe(await ports.spendLog.seq());
  });

  test("P5: judgements that are asked for at the same time give a verdict once", async () => {
    await open();
    const run = await start(world, pictures(3));
    loses([2], "request");
    const { ports, gate } = await carryOn(world, run, { lanes: 1, reads: true });
    const [lost] = await world.store.items(run.id, ["unknown"]);
    const entry = (await world.store.attempt(lost?.id ?? 0))?.spendLogId ?? 0;
    const verdict = { entry, verdict: "charged", evidence: "the counter moved", seq: null } as const;
    await ports.spendLog.keep(judgementOf([verdict]), await ports.spendLog.seq());
    await Promise.all([gate.settling.judge(), gate.settling.judge(), gate.settling.judge()]);
    expect(await states(world, run)).toMatchObject({ p2: "held" });
  });

  test("P5: a poll of an open task is written to the spend log only if a reading waits for it", async () => {
    await open({ taskMs: { min: 60_000, max: 60_000 } });
    const run = await start(world, pictures(3));
    loses([2], "request");
    const looks: string[] = [];
    listenIn((spendLog) => ({
      polled: (entry, look) => {
        looks.push(look.task);
        return spendLog.polled(entry, look);
      },
    }));
    await carryOn(world, run, { lanes: 1, reads: true });
    expect(world.sent.filter((request) => request.includes("/task/")).length).toBeGreaterThan(6);
    // The reading after the second request found the first one's task open.
    expect(looks).toEqual(["open", "completed", "completed"]);
  });

  test("P5: what another process finds out while this one judges is not overwritten, but judged with", async () => {
    await open();
    const run = await start(world, pictures(3));
    loses([2], "request");
    const others = world.accounts.spendLog({
      origin: "sandbox",
      fingerprint: fingerprint(world.sandbox.key),
      workspace: "elsewhere",
    });
    let seen = 0;
    listenIn((spendLog) => ({
      evidence: async (settings) => {
        const evidence = await spendLog.evidence(settings);
        const judgement = evidence && reconcile(evidence);
        const isLost = evidence?.entries.some(({ outcome }) => outcome === "unknown");
        // They see that somebody else has used the key, after which its counters prove nothing.
        if (judgement && isLost && isNews(judgement, evidence) && seen++ === 0) {
          expect(judgement.verdicts).toEqual([]);
          const foreign = { ...judgement, foreignAt: world.clock.now() };
          expect(await others.keep(foreign, await others.seq())).toBe(true);
        }
        return evidence;
      },
    }));
    await carryOn(world, run, { lanes: 1, reads: true, ...settling({ wait: true }) });
    expect(seen).toBeGreaterThan(0);
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "held", p3: "archived" });
    expect(await notes(run)).toEqual([expect.stringContaining("used from elsewhere")]);
  });

  test("P5: a run is not kept from its verdict by another workspace that pays without a break", async () => {
    await open();
    const run = await start(world, pictures(3));
    loses([2], "answer");
    const others = world.accounts.spendLog({
      origin: "sandbox",
      fingerprint: fingerprint(world.sandbox.key),
      workspace: "elsewhere",
    });
    let [tries, most] = [0, 0];
    listenIn((spendLog) => ({
      keep: async (judgement, seq) => {
        most = Math.max(most, ++tries);
        if (tries < 50)
          await others.answered(
            await others.intend({ itemKey: "k1:theirs", price: credits(4), at: world.clock.now() }),
            { outcome: "free" },
          );
        return spendLog.keep(judgement, seq);
      },
    }));
    await carryOn(world, run, { lanes: 1, reads: true, ...settling({ wait: true }) });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "held", p3: "archived" });
    expect(most).toBeLessThan(20);
  });

  test("P5: a poll of an overdue task is written to the spend log, or the task would count as abandoned", async () => {
    await open({ taskMs: { min: 1_800_000, max: 1_800_000 } });
    const run = await start(world, pictures(1));
    const looks: string[] = [];
    listenIn((spendLog) => ({
      polled: (entry, look) => {
        looks.push(look.task);
        return spendLog.polled(entry, look);
      },
    }));
    await carryOn(world, run, { lanes: 1, reads: true, overdueWaitMs: 3_600_000 });
    expect(looks[0]).toBe("open");
    expect(looks.at(-1)).toBe("completed");
  });

  test("P5: a poll of an open task settles immediately what a reading waited for", async () => {
    await open({ taskMs: { min: 300_000, max: 300_000 } });
    const run = await start(world, pictures(2));
    const body = JSON.stringify({ error: { code: "GENERATION_ERROR", message: "try later" } });
    loses([2], { kind: "answer", status: 500, headers: {}, body });
    const began = world.clock.now();
    const submitted: number[] = [];
    const { tamper } = world;
    world.tamper = (request, pass) => {
      if (request.startsWith("POST")) submitted.push(world.clock.now() - began);
      return tamper ? tamper(request, pass) : pass();
    };
    await carryOn(world, run, { lanes: 1, reads: true });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived" });
    expect(submitted).toHaveLength(3);
    // The first task is still open then.
    expect(submitted[2]).toBeLessThan(120_000);
  });

  test("P5: what another workspace found out about its task is taken up within ten minutes", async () => {
    await open();
    const run = await start(world, pictures(3));
    loses([2], "request");
    const began = world.clock.now();
    await world.accounts.accountOf("sandbox", fingerprint(world.sandbox.key));
    const others = world.accounts.spendLog({
      origin: "sandbox",
      fingerprint: fingerprint(world.sandbox.key),
      workspace: "elsewhere",
    });
    let theirs = 0;
    const { tamper } = world;
    world.tamper = async (request, pass) => {
      // Their task was open when the counters were read for the first time.
      if (request.startsWith("POST") && theirs === 0) {
        theirs = await others.intend({ itemKey: "k1:other", price: noCredits, at: world.clock.now() });
        await others.answered(theirs, { outcome: "accepted", charged: noCredits });
      }
      return tamper ? tamper(request, pass) : pass();
    };
    const minutes = (count: number) => began + count * 60_000;
    world.clock.alarm(minutes(40), () => {
      void others.polled(theirs, { task: "completed", charged: noCredits, endedAt: null });
    });
    await carryOn(world, run, { lanes: 1, reads: true, ...settling({ wait: true }) });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived", p3: "archived" });
    expect(world.clock.now()).toBeGreaterThan(minutes(40));
    expect(world.clock.now()).toBeLessThan(minutes(51));
  });

  test("P5: a run does not wait for it, and the next one settles it", async () => {
    await open();
    const run = await start(world, pictures(3));
    loses([2], "request");
    const session = await carryOn(world, run, { lanes: 1, reads: true });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "unknown", p3: "archived" });
    expect(session.gate.settling.unsettled).toBe(1);
    expect(session.gate.settling.nextReadingAt).toBeGreaterThan(world.clock.now());
    world.clock.advance(20 * 60_000);
    await carryOn(world, run, { reads: true });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived", p3: "archived" });
    expect(posts()).toBe(4);
  });

  test("P3: at --max-unsettled submitting waits, and continues when one is settled", async () => {
    await open();
    const run = await start(world, pictures(5));
    loses([2, 3], "request");
    const began = world.clock.now();
    await carryOn(world, run, { lanes: 1, reads: true, ...settling({ unsettledMax: 2 }) });
    const found = Object.values(await states(world, run));
    expect(found).toEqual(["archived", "archived", "archived", "archived", "archived"]);
    expect(posts()).toBe(7);
    expect(await spent()).toBe(20);
    const reasons = world.progress.flatMap(({ reason }) => (reason?.kind === "settling" ? reason : []));
    const text = "submitting is paused until 2 lost answers are settled";
    expect(reasons).toContainEqual({ kind: "settling", text, until: expect.any(Number) });
    expect(Math.max(...reasons.map(({ until }) => (until ?? 0) - began))).toBeLessThan(16 * 60_000);
    expect(world.progress.at(-1)?.reason).toBeNull();
  });

  test("P3: what an earlier execution lost is settled beside the run and stops nothing", async () => {
    await open();
    const run = await start(world, pictures(6));
    loses([2, 3], "request");
    const price = (await world.store.items(run.id))[0]?.price ?? noCredits;
    await carryOn(world, run, { lanes: 1, reads: true, maxCredits: times(price, 3) });
    expect(Object.values(await states(world, run)).filter((state) => state === "planned")).toHaveLength(3);
    expect(Object.values(await states(world, run)).filter((state) => state === "unknown")).toHaveLength(2);

    const began = world.clock.now();
    await carryOn(world, run, { lanes: 1, reads: true, ...settling({ unsettledMax: 2 }) });
    const found = await states(world, run);
    expect(Object.values(found).filter((state) => state === "archived")).toHaveLength(4);
    expect(Object.values(found).filter((state) => state === "unknown")).toHaveLength(2);
    expect(world.clock.now() - began).toBeLessThan(4 * 60_000);
    world.clock.advance(20 * 60_000);
    await carryOn(world, run, { lanes: 1, reads: true });
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
    expect(await spent()).toBe(24);
  });

  test("P7: the cap is not final while a request may yet turn out to have cost nothing", async () => {
    await open();
    const run = await start(world, pictures(3));
    const price = (await world.store.items(run.id))[0]?.price ?? noCredits;
    loses([2], "request");
    await carryOn(world, run, {
      lanes: 1,
      reads: true,
      maxCredits: times(price, 2),
      ...settling({ wait: true }),
    });
    expect(Object.values(await states(world, run)).toSorted()).toEqual(["archived", "archived", "planned"]);
    expect(posts()).toBe(3);
  });

  test("P5: a complete GENERATION_ERROR needs one reading, and by the settings none", async () => {
    await open();
    const run = await start(world, pictures(3));
    const body = JSON.stringify({ error: { code: "GENERATION_ERROR", message: "try later" } });
    loses([2], { kind: "answer", status: 500, headers: {}, body });
    const began = world.clock.now();
    await carryOn(world, run, { lanes: 1, reads: true });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived", p3: "archived" });
    expect(world.clock.now() - began).toBeLessThan(2 * 60_000);
    const other = await start(world, [...pictures(3), picture("p4", 4)]);
    loses([1], { kind: "answer", status: 500, headers: {}, body });
    world.sent = [];
    await carryOn(world, other, { ...settling({ errorIsFree: true }) });
    expect((await states(world, other)).p4).toBe("archived");
    expect(posts()).toBe(2);
  });

  test("P5: a gateway's 502 is no answer of the service's", async () => {
    await open();
    const run = await start(world, pictures(3));
    const body = JSON.stringify({ error: { code: "BAD_GATEWAY" } });
    loses([2], { kind: "answer", status: 502, headers: {}, body });
    await carryOn(world, run, { lanes: 1, reads: true });
    expect((await states(world, run)).p2).toBe("unknown");
  });

  test("P5: a key that is used from elsewhere proves nothing: the item is held", async () => {
    await open();
    const run = await start(world, pictures(3));
    let count = 0;
    world.tamper = async (request, pass) => {
      if (!request.startsWith("POST") || ++count !== 2) return pass();
      for (let other = 0; other < 3; other++) await spent();
      return cut;
    };
    await carryOn(world, run, { lanes: 1, reads: true });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "held", p3: "archived" });
    expect(await notes(run)).toEqual([expect.stringContaining("used from elsewhere")]);
  });

  test("P2: --orphans resubmit pays nothing again whose task a person found, though its outputs cannot be had", async () => {
    await open();
    const run = await start(world, pictures(1));
    loses([1], "answer");
    await carryOn(world, run, { lanes: 1, ...settling() });
    const [item] = await world.store.items(run.id);
    const id = item?.id ?? 0;
    const attempt = await world.store.attempt(id);
    expect(await world.store.item(id)).toMatchObject({ state: "held" });
    await world.store.adopt(id, { taskId: "task-found", charged: credits(4), attempt: attempt?.id ?? 0 });
    await world.store.complete(id, {
      urls: ["https://files.example/1"],
      fetchBy: 0,
      charged: credits(4),
      createdAt: "c",
      completedAt: null,
    });
    await world.store.apply(id, "unfetchable", { note: "gone" });
    world.tamper = null;
    await carryOn(world, run, { lanes: 1, ...settling({ orphanCredits: credits(8) }) });
    expect(await states(world, run)).toEqual({ p1: "held" });
    expect(posts()).toBe(1);
  });

  test("P6: --orphans resubmit pays again within its bound, and no further", async () => {
    await open();
    const run = await start(world, pictures(5));
    loses([2, 3], "answer");
    await carryOn(world, run, { lanes: 1, reads: true, ...settling({ orphanCredits: credits(4) }) });
    const found = Object.values(await states(world, run)).toSorted();
    expect(found).toEqual(["archived", "archived", "archived", "archived", "held"]);
    expect(await spent()).toBe(24);
    expect((await world.store.spending(run.id)).pending).toBe(credits(8));
  });
});

describe("a process that ended in the middle", () => {
  const spendLog = () =>
    world.accounts.spendLog({
      origin: "sandbox",
      fingerprint: fingerprint(world.sandbox.key),
      workspace: `${world.folder}/state.db`,
    });

  test("P1: an entry of the spend log whose item was not submitted was not sent", async () => {
    await open();
    const run = await start(world, pictures(1));
    await world.accounts.accountOf("sandbox", fingerprint(world.sandbox.key));
    await spendLog().intend({ itemKey: "k1:p1", price: credits(4), at: world.clock.now() });
    await carryOn(world, run, { reads: true });
    expect(await states(world, run)).toEqual({ p1: "archived" });
    expect(await spendLog().open()).toEqual([]);
  });

  test("P2 P4: an entry of the spend log from before this history may have been sent, and is not free", async () => {
    await open();
    await world.accounts.accountOf("sandbox", fingerprint(world.sandbox.key));
    const entry = await spendLog().intend({ itemKey: "k1:old", price: credits(4), at: world.clock.now() });
    world.clock.advance(1);
    const run = await start(world, pictures(1));
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived" });
    const inDoubt = await spendLog().unended(0);
    expect(inDoubt).toEqual([expect.objectContaining({ entry, itemKey: "k1:old", answered: true })]);
  });

  test("P2 P5: a request that it left without an answer is settled by the next one", async () => {
    await open();
    const run = await start(world, pictures(2));
    await carryOn(world, run, { reads: true });
    const again = await start(world, [...pictures(2), picture("p3", 3)]);
    const [item] = (await world.store.items(again.id)).filter(({ rowId }) => rowId === "p3");
    const spendLogId = await spendLog().intend({
      itemKey: "k1:p3",
      price: credits(4),
      at: world.clock.now(),
    });
    await world.store.intend(item?.id ?? 0, {
      runId: again.id,
      sentAt: world.clock.now(),
      bodySha256: "00",
      spendLogId,
    });
    await carryOn(world, again, { reads: true, ...settling({ wait: true }) });
    expect((await states(world, again)).p3).toBe("archived");
    expect(posts()).toBe(3);
  });

  test("is recovered in order: its receipts, what is paid for, what is unknown, and only then what is bought", async () => {
    await open({ taskMs: { min: 2_500, max: 2_500 } });
    const run = await start(world, pictures(5));
    await crashAtThird(run);
    expect(await states(world, run)).toMatchObject({ p1: "submitting", p2: "processing", p3: "submitting" });

    world.sent.length = 0;
    world.clock.advance(5_000);
    await carryOn(world, run, { lanes: 1, reads: true });
    const kinds = world.sent.map((request) => request.replace(/^(GET|POST) \/api\/v1\/(\w+).*/, "$1 $2"));
    // Who it is comes before everything; what p1 was answered is in the receipts.
    expect(kinds.slice(0, 4)).toEqual(["GET me", "GET task", "GET me", "POST generate"]);
    expect(await states(world, run)).toEqual({
      p1: "archived",
      p2: "archived",
      p3: "held",
      p4: "archived",
      p5: "archived",
    });
    expect(posts()).toBe(2);
  });

  test("P2: a refusal that only the receipts have does not buy what the manifest no longer asks for", async () => {
    await open();
    const run = await start(world, pictures(1));
    const { conclude } = world.store;
    const refused = JSON.stringify({
      error: { code: "INSUFFICIENT_CREDITS", message: "the balance is too low" },
    });
    world.tamper = async (request, pass) =>
      request.startsWith("POST") ? { ...(await pass()), status: 402, body: refused } : pass();
    world.store.conclude = () => Promise.reject(new Error("the power went"));
    await expect(carryOn(world, run)).rejects.toThrow("the power went");
    world.store.conclude = conclude;
    world.tamper = null;
    world.sent.length = 0;
    expect(await states(world, run)).toEqual({ p1: "submitting" });
    await world.store.enroll(run.id, [picture("p2", 2)]);
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p2: "archived" });
    expect(posts()).toBe(1);
  });

  /** The first answer is in the receipts alone, the second one everywhere, the third request got none. */
  async function crashAtThird(run: Run): Promise<void> {
    const { conclude } = world.store;
    let asked = 0;
    world.tamper = async (request, pass) => {
      const reply = await pass();
      if (request.startsWith("POST") && ++asked === 3) throw new Error("the power went");
      return reply;
    };
    world.store.conclude = async (attempt, ...rest) => {
      if (attempt !== 1) await conclude(attempt, ...rest);
    };
    await expect(carryOn(world, run, { lanes: 1, reads: true })).rejects.toThrow("the power went");
    world.store.conclude = conclude;
    world.tamper = null;
  }

  test("P2: after the spend log was lost, requests that only it knew are held", async () => {
    await open();
    const run = await start(world, pictures(1));
    const [item] = await world.store.items(run.id);
    await world.accounts.accountOf("sandbox", fingerprint(world.sandbox.key));
    const spendLogId = await spendLog().intend({
      itemKey: "k1:p1",
      price: credits(4),
      at: world.clock.now(),
    });
    await world.store.intend(item?.id ?? 0, {
      runId: run.id,
      sentAt: world.clock.now(),
      bodySha256: "00",
      spendLogId,
    });

    await world.accounts.close();
    world.accounts = openAccounts(":memory:", world.clock);
    await world.accounts.accountOf("sandbox", fingerprint(world.sandbox.key));
    world.clock.advance(1);
    const elsewhere = {
      origin: "sandbox",
      fingerprint: fingerprint(world.sandbox.key),
      workspace: "elsewhere",
    };
    const others = world.accounts.spendLog(elsewhere);
    const first = await others.intend({ itemKey: "k1:other", price: credits(4), at: world.clock.now() });
    await others.answered(first, { outcome: "accepted", charged: credits(4) });
    await others.polled(first, { task: "completed", charged: credits(4), endedAt: null });
    const before = await others.evidence(defaultReconcile);

    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "held" });
    expect(await notes(run)).toEqual([expect.stringContaining("it is not in the account's spend log")]);
    expect(await others.evidence(defaultReconcile)).toEqual(before);
    expect((await others.entry(first))?.verdict).toBeNull();
    expect(posts()).toBe(0);
  });

  test("P4: what its item knew and the spend log did not is brought to it", async () => {
    await open();
    const run = await start(world, pictures(2));
    const real = world.accounts.spendLog;
    // The process ends before the spend log hears of any answer.
    world.accounts.spendLog = (owner) => ({
      ...real(owner),
      answered: async () => {},
      polled: async () => {},
    });
    await carryOn(world, run, { reads: true });
    world.accounts.spendLog = real;
    expect(await spendLog().open()).toHaveLength(2);
    const session = await carryOn(world, run, { reads: true });
    expect(await spendLog().open()).toEqual([]);
    const evidence = await spendLog().evidence(defaultReconcile);
    expect(evidence).toMatchObject({ trusted: true });
    expect(session.gate.settling.unsettled).toBe(0);
  });
});
