import { afterEach, describe, expect, test } from "vitest";
import { generateOutcome } from "../../src/client/answer.js";
import { openService, ServiceError } from "../../src/client/service.js";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { type Credits, noCredits } from "../../src/core/money.js";
import type { Reply } from "../../src/core/ports/send.js";
import { carryOn, openWorld, picture, silentLog, start, type World } from "./harness.js";

/**
 * Every loop of a run against a service that gives one answer for ever, on a plan without limits, so that nothing but the
 * rule for repetitions slows it down. The run ends, or waits with a stated time, and no minute has more requests than
 * a service may expect of three items.
 */
let world: World;

afterEach(() => world.close());

const requestsPerMinuteMax = 40;
/** The page of the service recommends a poll of a task every two seconds at first. */
const pollsPerMinuteMax = 100;
/** A run that has not ended after that (ms) has to say until when it waits. */
const patienceMs = 6 * 60 * 60_000;

const html = { "content-type": "text/html" };

function answer(status: number, body: unknown = "", headers: Record<string, string> = {}): Reply {
  return { kind: "answer", status, headers, body: typeof body === "string" ? body : JSON.stringify(body) };
}

const forEver: [string, Reply][] = [
  ["connection refused", { kind: "not_sent", reason: "connect ECONNREFUSED" }],
  ["connection reset", { kind: "no_answer", reason: "the connection was reset" }],
  ...[400, 401, 402, 403, 404, 408, 409, 413, 422, 425, 429, 451, 499, 500, 502, 503].map(
    (status): [string, Reply] => [`${status}`, answer(status, { error: { message: "no" } })],
  ),
  ["401 INVALID_API_KEY", answer(401, { error: { code: "INVALID_API_KEY" } })],
  ["402 INSUFFICIENT_CREDITS", answer(402, { error: { code: "INSUFFICIENT_CREDITS" } })],
  ["403 SUBSCRIPTION_REQUIRED", answer(403, { error: { code: "SUBSCRIPTION_REQUIRED" } })],
  ["a 403 page", answer(403, "<title>blocked</title>", html)],
  ["429 with Retry-After 0", answer(429, "", { "retry-after": "0" })],
  ["429 with Retry-After 90", answer(429, "", { "retry-after": "90" })],
  ["503 with Retry-After 0", answer(503, "", { "retry-after": "0" })],
  ["503 with Retry-After 45", answer(503, "", { "retry-after": "45" })],
  ["500 GENERATION_ERROR", answer(500, { error: { code: "GENERATION_ERROR" } })],
  ["a page with 200", answer(200, "<html>", html)],
  ["an empty 200", answer(200)],
  ["a redirect", answer(302, "", { location: "/login" })],
  ["a task id that is none", answer(200, { task_id: null })],
  ["processing", answer(200, { status: "processing" })],
  ["an unknown status", answer(200, { status: "queued" })],
  ["completed without addresses", answer(200, { status: "completed", output_urls: [] })],
  [
    "completed with an address that leads nowhere",
    answer(200, { status: "completed", output_urls: ["http://127.0.0.1:1/a"] }),
  ],
  ["failed at the provider", answer(200, { status: "failed", error: "the provider is overloaded" })],
];

const endpoints: [string, (request: string) => boolean][] = [
  ["POST generate", (request) => request.startsWith("POST")],
  ["GET task", (request) => request.includes("/task/")],
  ["GET me", (request) => request.endsWith("/me")],
  ["everything", () => true],
];

const variants: [string, { price: Credits; orphanCredits: Credits; errorIsFree: boolean; wait: boolean }][] =
  [
    [
      "a paid model",
      { price: 4_000_000 as Credits, orphanCredits: noCredits, errorIsFree: false, wait: false },
    ],
    ["a free model", { price: noCredits, orphanCredits: noCredits, errorIsFree: true, wait: true }],
    [
      "credits for lost answers",
      { price: noCredits, orphanCredits: 9_000_000 as Credits, errorIsFree: false, wait: true },
    ],
  ];

/** Answers that leave open whether a paid request was charged. */
function isOpen(reply: Reply): boolean {
  return reply.kind !== "answer" || generateOutcome(reply).kind === "unknown";
}

// What is free, or may be paid twice, differs only in what follows from such an answer.
const cases = endpoints.flatMap(([where, isIt], at) =>
  variants.flatMap(([what, variant], other) =>
    forEver
      .filter(([, reply]) => other === 0 || (at === 0 && isOpen(reply)))
      .map(([name, reply]) => ({ where, isIt, what, variant, name, reply })),
  ),
);

describe("P2 P11: a run with a service that answers the same for ever", () => {
  test.each(cases)("$name to $where, with $what, ends or says until when it waits", async (one) => {
    const { isIt, reply, variant } = one;
    world = await openWorld({ credits: 1_000 });
    const { clock } = world;
    const items = ["a", "b", "c"].map((id, at) => picture(id, at + 1, { price: variant.price }));
    const made = await start(world, items);
    const interrupt = new AbortController();
    const times: number[] = [];
    const began = clock.monotonic();
    let elsewhere = 0;
    world.tamper = async (request, pass) => {
      times.push(clock.monotonic());
      // A request that waits for nothing would never let time pass.
      if (clock.monotonic() - began > patienceMs || times.length > 3_000) interrupt.abort();
      if (request.startsWith("POST")) elsewhere++;
      if (isIt(request)) return reply;
      const passed = await pass();
      // The key is used elsewhere too, so nothing can be proven by its counters.
      if (!request.endsWith("/me") || passed.kind !== "answer" || variant.price !== 0) return passed;
      const me = JSON.parse(passed.body);
      me.api_key.requests_count += 2 * elsewhere;
      return { ...passed, body: JSON.stringify(me) };
    };
    const { orphanCredits, errorIsFree, wait } = variant;
    const session = await carryOn(world, made, {
      perMinute: null,
      perDay: null,
      interrupt: interrupt.signal,
      settling: { ...defaultReconcile, errorIsFree, unsettledMax: 5, wait, orphanCredits },
      onInsufficient: "wait",
      onDailyLimit: "wait",
    });
    const most = one.where === "GET task" ? pollsPerMinuteMax : requestsPerMinuteMax;
    for (const from of times)
      expect(times.filter((time) => time >= from && time < from + 60_000).length).toBeLessThanOrEqual(most);
    // Nobody pays more often than the rule allows.
    const posts = world.sent.filter((request) => request.startsWith("POST")).length;
    if (
      one.where !== "everything" &&
      !["402 INSUFFICIENT_CREDITS", "429"].some((name) => one.name.startsWith(name))
    )
      expect(posts).toBeLessThanOrEqual(8 * items.length);
    if (!interrupt.signal.aborted) return;
    // What it told before the request that was one too many.
    const told = world.progress.slice(-20).some(({ reason }) => reason?.until != null);
    expect([told, session.gate.stops.map(({ kind }) => kind)]).toEqual([true, ["interrupted"]]);
  });
});

test("P11: a run that has only to find out about a lost request does not stay open for a pause of a day", async () => {
  world = await openWorld();
  const made = await start(world, [picture("a", 1)]);
  world.tamper = async (request, pass) =>
    request.startsWith("POST") ? answer(503, "", { "retry-after": "86400" }) : pass();
  const began = world.clock.monotonic();
  await carryOn(world, made, { reads: true });
  expect(world.clock.monotonic() - began).toBeLessThan(60 * 60_000);
  expect(world.sent.filter((request) => request.startsWith("POST")).length).toBe(1);
});

describe("a record that somebody waits for", () => {
  test.each(forEver.filter(([, reply]) => reply.kind !== "answer" || reply.status !== 200))(
    "is asked for three times at most, and not before the time that the service asks for: %s",
    async (_, reply) => {
      world = await openWorld();
      const { clock } = world;
      const times: number[] = [];
      const service = openService(
        async () => {
          times.push(clock.monotonic());
          return reply;
        },
        {
          accounts: world.accounts,
          key: world.sandbox.key,
          caller: () => ({ accountId: 1, fingerprint: "0" }),
          clock,
          log: silentLog,
          onDailyLimit: "stop",
          signal: new AbortController().signal,
        },
      );
      await world.accounts.accountOf("sandbox", "0");
      let over = false;
      const asked = service.me({ waits: false }).catch((error: unknown) => error);
      void asked.finally(() => {
        over = true;
      });
      while (!over) {
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
        if (!over) clock.advanceToNext();
      }
      expect(await asked).toBeInstanceOf(ServiceError);
      expect(times.length).toBeLessThanOrEqual(3);
    },
  );
});
