import { afterEach, describe, expect, test } from "vitest";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { noCredits } from "../../src/core/money.js";
import type { Reply } from "../../src/core/ports/send.js";
import type { Item, Run } from "../../src/core/ports/store.js";
import type { Session } from "../../src/run/ports.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

/** Answers to paid requests that are refusals, in the many forms that firewalls, gateways and frameworks give them. */
let world: World;

afterEach(() => world.close());

const page = (title: string) =>
  `<!DOCTYPE html><html><head><title>${title}</title></head><body>Sorry</body></html>`;
const html = { "content-type": "text/html" };
const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;

function refusal(status: number, body: string | object, headers: Record<string, string> = {}): Reply {
  return { kind: "answer", status, headers, body: typeof body === "string" ? body : JSON.stringify(body) };
}

/** The paid requests whose prompt has this word get this answer, and never reach the service. */
function refuses(word: string, reply: Reply): void {
  world.tamper = async (request, pass, body = "") =>
    request.startsWith("POST") && body.includes(word) ? reply : pass();
}

const others = ["a", "b", "c"];

async function run(
  reply: Reply,
  tells: object | null = null,
): Promise<{ run: Run; session: Session; item: Item }> {
  world = await openWorld();
  refuses("ODD", reply);
  const { tamper } = world;
  if (tells !== null)
    world.tamper = async (request, pass, body) => {
      const answered = await (tamper?.(request, pass, body) ?? pass());
      if (!request.endsWith("/me") || answered.kind !== "answer") return answered;
      return { ...answered, body: JSON.stringify({ ...JSON.parse(answered.body), ...tells }) };
    };
  const items = [picture("odd", 1, { prompt: "ODD" }), ...others.map((id, at) => picture(id, at + 2))];
  const made = await start(world, items);
  const session = await carryOn(world, made, { lanes: 1, reads: true });
  const item = (await world.store.items(made.id)).find(({ rowId }) => rowId === "odd");
  if (item === undefined) throw new Error("the item is gone");
  return { run: made, session, item };
}

const allButOdd = { a: "archived", b: "archived", c: "archived" };

describe("a request that is refused for what it says", () => {
  test.each([
    [
      422,
      { detail: [{ loc: ["body", "prompt"], msg: "at most 20 characters" }] },
      "body.prompt: at most 20 characters",
    ],
    [413, page("413 Request Entity Too Large"), "413 Request Entity Too Large"],
    [404, { error: { code: "NO_SUCH_ROUTE" } }, "NO_SUCH_ROUTE"],
    [405, "", "answer 405"],
    [410, { message: "this model is gone" }, "this model is gone"],
    [415, { error: "unsupported" }, "unsupported"],
    [431, page("headers"), "headers"],
    [451, { title: "Unavailable For Legal Reasons" }, "Unavailable For Legal Reasons"],
    [401, page("Sign in"), "Sign in"],
    [402, page("Upgrade your plan"), "Upgrade your plan"],
    [403, page("Attention Required! | Cloudflare"), "Attention Required!"],
    [403, { error: { code: "WAF_BLOCKED", message: "rule 942100" } }, "WAF_BLOCKED: rule 942100"],
    [403, "", "answer 403"],
  ])(
    "P2: by a %i fails with the service's words, once, and keeps no other item waiting",
    async (status, body, words) => {
      const {
        run: made,
        session,
        item,
      } = await run(refusal(status, body, typeof body === "string" ? html : {}));
      expect(await states(world, made)).toEqual({ odd: "failed", ...allButOdd });
      expect(item.note).toContain(words);
      expect(session.gate.stops).toEqual([]);
      // The balance may have been too low at that moment, so a 402 is tried once more.
      expect(posts()).toBe(status === 402 ? 5 : 4);
      const { charged } = await world.store.spending(made.id, {});
      expect(charged).toBe(3 * 4_000_000);
    },
  );

  test("P2: with 402, and is made if the balance was too low only at that moment", async () => {
    world = await openWorld();
    const made = await start(world, [picture("odd", 1, { prompt: "ODD" }), picture("good", 2)]);
    let refused = 0;
    world.tamper = async (_, pass, body = "") =>
      body.includes("ODD") && refused++ === 0 ? refusal(402, page("cut"), html) : pass();
    const { gate } = await carryOn(world, made, { reads: true });
    expect(await states(world, made)).toEqual({ odd: "archived", good: "archived" });
    expect(gate.stops).toEqual([]);
  });

  test("P2: is recorded before the account is asked about it, so that a crash leaves nothing unknown", async () => {
    world = await openWorld();
    const made = await start(world, [picture("odd", 1, { prompt: "ODD" })]);
    const interrupt = new AbortController();
    const seen: string[] = [];
    world.tamper = async (request, pass, body = "") => {
      if (body.includes("ODD")) return refusal(403, page("blocked"), html);
      if (request.endsWith("/me")) {
        const { readFileSync } = await import("node:fs");
        seen.push(readFileSync(`${world.folder}/receipts.jsonl`, "utf8"));
      }
      return pass();
    };
    await carryOn(world, made, { interrupt: interrupt.signal });
    expect(seen.length).toBe(1);
    expect(seen[0]).toContain('"refused"');
  });
});

describe("many requests in a row that are refused for the same reason", () => {
  const reply = refusal(422, { detail: [{ loc: ["body", "prompt"], msg: "at most 20 characters" }] });
  const rows = (odd: number, good: number) => [
    ...Array.from({ length: odd }, (_, at) => picture(`odd${at}`, at + 1, { prompt: `ODD ${at}` })),
    ...Array.from({ length: good }, (_, at) => picture(`good${at}`, odd + at + 1)),
  ];
  const count = (all: Record<string, string>, state: string) =>
    Object.values(all).filter((one) => one === state).length;

  test("keep no good row waiting", async () => {
    world = await openWorld();
    refuses("ODD", reply);
    const made = await start(world, rows(12, 5));
    await carryOn(world, made, { lanes: 2, reads: true });
    const all = await states(world, made);
    expect([count(all, "failed"), count(all, "archived")]).toEqual([12, 5]);
  });

  test("are not sent for a whole sheet: after twenty, the rest of the model waits", async () => {
    world = await openWorld();
    refuses("ODD", reply);
    const made = await start(world, rows(50, 0));
    const { gate } = await carryOn(world, made, { lanes: 1, reads: true });
    expect(posts()).toBe(20);
    expect(gate.breaker.messages[0]).toContain("20 failures in a row: body.prompt: at most 20 characters");
  });
});

describe("a 401, 402 or 403 without the service's code, while something is wrong with the account", () => {
  test.each([
    [403, { subscription: null }, "subscription", "subscription: null"],
    [403, { subscription: { status: "past_due", plan: "Pro" } }, "subscription", "status: past_due"],
    [401, { subscription: { status: "canceled", plan: "Pro" } }, "key", "status: canceled"],
    [402, { credits: { balance: 3, used_this_key: 0 } }, "credits", "3 credits left"],
    [402, { credits: { balance: "0", used_this_key: 0 } }, "credits", "0 credits left"],
  ])("%i stops the run and says what the service says of it: %j", async (status, tells, stop, told) => {
    const { run: made, session } = await run(refusal(status, page("no"), html), tells);
    expect(await states(world, made)).toMatchObject({ odd: "planned" });
    expect(session.gate.stops).toMatchObject([{ kind: stop }]);
    expect(session.gate.stops[0]?.message).toContain(told);
    expect(posts()).toBe(1);
  });

  test("a 403 stops the run when the account cannot be read either, because nothing clears it", async () => {
    world = await openWorld();
    const made = await start(world, [picture("p1", 1)]);
    world.tamper = async () => refusal(403, page("blocked"), html);
    const { gate } = await carryOn(world, made);
    expect(gate.stops).toMatchObject([{ kind: "subscription" }]);
    expect(gate.stops[0]?.message).toContain("blocked");
    expect(await states(world, made)).toEqual({ p1: "planned" });
  });
});

describe("a poll that a firewall refuses", () => {
  test.each([401, 403])(
    "with %i says nothing of the account: the task is polled again and collected",
    async (status) => {
      world = await openWorld();
      const made = await start(world, [picture("p1", 1), picture("p2", 2)]);
      let refused = 0;
      world.tamper = async (request, pass) =>
        request.includes("/task/") && refused++ < 2 ? refusal(status, page("blocked"), html) : pass();
      const { gate } = await carryOn(world, made, { reads: true });
      expect(gate.stops).toEqual([]);
      expect(await states(world, made)).toEqual({ p1: "archived", p2: "archived" });
      expect(posts()).toBe(2);
    },
  );

  test("for ever leaves its tasks overdue, never paid for again, and asks the account once a minute at most", async () => {
    world = await openWorld();
    const made = await start(world, [picture("p1", 1)]);
    world.tamper = async (request, pass) =>
      request.includes("/task/") ? refusal(403, page("blocked"), html) : pass();
    const began = world.clock.now();
    await carryOn(world, made, { reads: true });
    expect(await states(world, made)).toEqual({ p1: "overdue" });
    expect(posts()).toBe(1);
    const minutes = Math.ceil((world.clock.now() - began) / 60_000);
    expect(world.sent.filter((request) => request.endsWith("/me")).length).toBeLessThanOrEqual(2 + minutes);
  });
});

describe("a paid request that fails for ever and is proven free each time", () => {
  test.each([
    ["a 503", refusal(503, { error: { code: "BUSY", message: "too many jobs wait" } })],
    ["a 409", refusal(409, { error: { code: "CONFLICT", message: "too many jobs wait" } })],
    ["a 408", refusal(408, "too many jobs wait")],
  ])(
    "%s: the item fails after eight tries, with the service's words, and is not charged",
    async (_, reply) => {
      world = await openWorld();
      refuses("ODD", reply);
      const made = await start(world, [picture("odd", 1, { prompt: "ODD" }), picture("a", 2)]);
      const settling = {
        ...defaultReconcile,
        settleMs: [1_000, 2_000] as const,
        unsettledMax: 5,
        wait: true,
        orphanCredits: noCredits,
      };
      await carryOn(world, made, { lanes: 1, reads: true, settling, maxFailures: null });
      expect(await states(world, made)).toEqual({ odd: "failed", a: "archived" });
      const odd = (await world.store.items(made.id)).find(({ rowId }) => rowId === "odd");
      expect(odd?.note).toMatch(
        /^8 requests in a row were lost and none was charged; the last: answer .*too many jobs wait/,
      );
      expect(posts()).toBe(9);
      // A person may have it tried once more.
      await world.store.apply(odd?.id ?? 0, "retry", {});
      await carryOn(world, made, { lanes: 1, reads: true, settling });
      expect(posts()).toBe(10);
    },
  );
});

describe("a free item whose answer is lost", () => {
  const busy = refusal(503, { error: { code: "BUSY", message: "try again later" } }, { "retry-after": "30" });

  test.each([noCredits, 10_000_000 as typeof noCredits])(
    "P2: is not paid for again without end, with --orphan-credits %i and a key that is used elsewhere too",
    async (orphanCredits) => {
      world = await openWorld();
      const made = await start(world, [picture("p1", 1, { price: noCredits })]);
      const times: number[] = [];
      let elsewhere = 0;
      world.tamper = async (request, pass) => {
        if (request.startsWith("POST")) {
          times.push(world.clock.monotonic());
          elsewhere += 2;
          return busy;
        }
        const reply = await pass();
        if (!request.endsWith("/me") || reply.kind !== "answer") return reply;
        const me = JSON.parse(reply.body);
        me.api_key.requests_count += elsewhere;
        return { ...reply, body: JSON.stringify(me) };
      };
      const settling = { ...defaultReconcile, unsettledMax: 5, wait: false, orphanCredits };
      for (let execution = 0; execution < 3; execution++)
        await carryOn(world, made, { lanes: 1, reads: true, settling });
      expect(await states(world, made)).toEqual({ p1: "held" });
      expect(times.length).toBeLessThanOrEqual(8);
      if (orphanCredits === 0) expect(times.length).toBe(1);
      // Retry-After is obeyed.
      for (const [at, time] of times.entries())
        if (at > 0) expect(time - (times[at - 1] ?? 0)).toBeGreaterThanOrEqual(30_000);
    },
  );
});
