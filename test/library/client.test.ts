import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { fingerprint } from "../../src/api/key.js";
import { ServiceError } from "../../src/client/service.js";
import { credits } from "../../src/core/money.js";
import { NoRequestsUntil } from "../../src/core/quota/quota.js";
import { ChargeUnknown, openClient } from "../../src/library/client.js";
import { runManifest } from "../../src/library/run.js";
import { openReader } from "../../src/library/workspace.js";
import { openSqlite } from "../../src/sqlite.js";
import { openAccounts } from "../../src/store/accounts/accounts.js";
import { afterThisFile } from "../after-file.js";
import { type Script, startProxy } from "../e2e/service.js";
import { skippingClock } from "../e2e/skipping-clock.js";
import { all, libraryPlace } from "./place.js";

const fox = { model: "aurora-image-mini", prompt: "a red fox" };

test("reaches all four endpoints, and lists models by category and without parameters", async () => {
  const { on, sandbox } = await libraryPlace();
  const client = await openClient(on, { service: sandbox });
  const { models } = await client.models({ category: "audio", includeParameters: false });
  expect(new Set(models.map(({ category }) => category))).toEqual(new Set(["audio"]));
  expect(models.flatMap(({ parameters = [] }) => parameters)).toEqual([]);
  const made = await client.generate(fox);
  expect(made).toMatchObject({ creditsConsumed: 1, creditsRemaining: 499 });
  expect(await client.task(made.taskId)).toMatchObject({ task_id: made.taskId, status: "processing" });
  expect((await client.me()).credits.balance).toBe(499);
  await client.close();
});

test.each([
  [{ model: "nobody", prompt: "a fox" }, "request", 400, "INVALID_MODEL"],
  [{ model: "aurora-image", prompt: "a fox" }, "credits", 402, "INSUFFICIENT_CREDITS"],
])("throws what the service answers to %j, by kind, status and code", async (request, kind, status, code) => {
  const { on, sandbox } = await libraryPlace({ credits: 0 });
  const client = await openClient(on, { service: sandbox });
  const error = await client.generate(request).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ServiceError);
  expect(error).not.toBeInstanceOf(ChargeUnknown);
  expect(error).toMatchObject({ kind, status, code });
  await client.close();
});

/** A service that answers every request with this record. */
async function serviceThatAnswers(record: object): Promise<string> {
  const server = createServer((_, response) => {
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(record));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  afterThisFile(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a task is read from a service that leaves out the fields that are null", async () => {
  const { on, paid } = await libraryPlace();
  const record = {
    task_id: "t1",
    model: "m",
    category: "image",
    status: "processing",
    input: {},
    credits_consumed: 1,
    created_at: "2026-11-20T12:00:00Z",
  };
  const client = await openClient(on, { service: { ...paid, baseUrl: await serviceThatAnswers(record) } });
  expect(await client.task("t1")).toEqual({ ...record, output_urls: null, error: null, completed_at: null });
  await client.close();
});

test("the account is read from a service that leaves out the fields that are null", async () => {
  const { on, paid } = await libraryPlace();
  const record = {
    user: { id: "7d0f2f7e", email: "ana@example.com" },
    credits: { balance: 5, used_this_key: 0 },
    api_key: { id: "k1", name: "nightly", requests_count: 1 },
  };
  const client = await openClient(on, { service: { ...paid, baseUrl: await serviceThatAnswers(record) } });
  expect(await client.me()).toEqual({ ...record, user: { ...record.user, name: null }, subscription: null });
  await client.close();
});

test("an answer that is not the documented record is unreadable, with its status", async () => {
  const { on, paid } = await libraryPlace();
  const client = await openClient(on, {
    service: { ...paid, baseUrl: await serviceThatAnswers({ hello: 1 }) },
  });
  for (const call of [() => client.task("t1"), () => client.models(), () => client.me()])
    await expect(call()).rejects.toMatchObject({ kind: "unreadable", status: 200, code: null });
  await client.close();
});

test("says which task is not known", async () => {
  const { on, sandbox } = await libraryPlace();
  const client = await openClient(on, { service: sandbox });
  const unknown = "00000000-0000-4000-8000-000000000000";
  await expect(client.task(unknown)).rejects.toMatchObject({
    name: "ServiceError",
    kind: "request",
    status: 404,
    code: "TASK_NOT_FOUND",
  });
  await client.close();
});

test("throws the service's own words when the key is refused, and never shows the key", async () => {
  const { on, sandbox } = await libraryPlace();
  const apiKey = `svc_${"z".repeat(32)}`;
  const service = { baseUrl: sandbox.baseUrl, apiKey };
  const client = await openClient(on, { service });
  const error = (await client.generate(fox).catch((thrown: unknown) => thrown)) as ServiceError;
  expect(error).toMatchObject({ name: "ServiceError", kind: "key", code: "INVALID_API_KEY" });
  expect(`${error.stack}${JSON.stringify(error)}`).not.toContain("zzzz");
  await client.close();
});

test("a page of a firewall in place of an answer is about the request, if nothing is wrong with the account", async () => {
  const { on, sandbox } = await libraryPlace();
  const blocks =
    (word: string): Script =>
    ({ what, body }) =>
      what === "POST generate" && body.includes(word)
        ? { status: 403, text: "<title>blocked</title>" }
        : "serve";
  const between = await startProxy({ url: sandbox.baseUrl, key: sandbox.apiKey }, blocks("fox"));
  const client = await openClient(on, { service: { baseUrl: between.url, apiKey: sandbox.apiKey } });
  await expect(client.generate(fox)).rejects.toMatchObject({
    kind: "request",
    status: 403,
    message: expect.stringContaining('a page titled "blocked"'),
  });
  expect((await client.me()).credits.balance).toBe(500);
  expect(await client.generate({ ...fox, prompt: "a hen" })).toMatchObject({
    creditsConsumed: expect.any(Number),
  });
  await client.close();
});

test("P2: a paid request whose answer is lost is sent once, and thrown as ChargeUnknown", async () => {
  const { on, sandbox } = await libraryPlace({
    faults: { rules: [{ fault: "lost-reply", on: ["generate"], at: [1] }] },
  });
  const client = await openClient(on, { service: sandbox });
  await expect(client.generate(fox)).rejects.toBeInstanceOf(ChargeUnknown);
  // One generation was charged, and no second one.
  expect((await client.me()).credits.balance).toBe(499);
  await client.close();
});

test("P2: closing a client awaits the paid request in flight, and sends none that waits", async () => {
  const { on, sandbox } = await libraryPlace({
    plan: "Starter",
    faults: { rules: [{ fault: { kind: "slow-answer", delayMs: 3_000 }, on: ["generate"], at: [1] }] },
  });
  const client = await openClient(on, { service: sandbox });
  const observer = await openClient(on, { service: sandbox });
  const balance = async () => (await observer.me()).credits.balance;
  const inFlight = client.generate(fox);
  while ((await balance()) === 500) await setImmediate();
  const waits = expect(client.generate(fox)).rejects.toMatchObject({ kind: "interrupted" });
  await skippingClock.during(client.close());
  expect(await inFlight).toMatchObject({ creditsConsumed: 1 });
  await waits;
  expect(await balance()).toBe(499);
  await observer.close();
});

test("P1, P5: paid requests of a client are in the spend log of the account, for the caps of later runs", async () => {
  const { on, paid, place } = await libraryPlace();
  const client = await openClient(on, { service: paid });
  const { taskId } = await client.generate(fox);
  await skippingClock.during(skippingClock.sleep(3_000));
  expect((await client.task(taskId)).status).toBe("completed");
  await client.close();
  const accounts = openAccounts(join(place.root, "state", "bulkgen", "accounts.db"), skippingClock);
  const owner = { origin: paid.baseUrl, fingerprint: fingerprint(paid.apiKey), workspace: "elsewhere" };
  const evidence = await accounts.spendLog(owner).evidence({ settleMs: [1, 2], errorIsFree: false });
  await accounts.close();
  expect(evidence?.entries).toMatchObject([
    { outcome: "accepted", charged: credits(1), price: credits(1), task: "completed" },
  ]);
});

test("P5: a task may be polled by another client than the one that submitted it", async () => {
  const { on, paid, place } = await libraryPlace();
  const submitting = await openClient(on, { service: paid });
  const { taskId } = await submitting.generate(fox);
  await submitting.close();
  await skippingClock.during(skippingClock.sleep(3_000));
  const polling = await openClient(on, { service: paid });
  expect((await polling.task(taskId)).status).toBe("completed");
  await polling.close();
  const accounts = openAccounts(join(place.root, "state", "bulkgen", "accounts.db"), skippingClock);
  const owner = { origin: paid.baseUrl, fingerprint: fingerprint(paid.apiKey), workspace: "elsewhere" };
  const evidence = await accounts.spendLog(owner).evidence({ settleMs: [1, 2], errorIsFree: false });
  await accounts.close();
  expect(evidence?.entries).toMatchObject([{ outcome: "accepted", task: "completed" }]);
});

test("shared data that cannot be kept is an EarlyExit, which does not advise a folder in the same place", async () => {
  const { on, paid, place } = await libraryPlace();
  place.write("file", "");
  const env = { ...on.env, XDG_STATE_HOME: join(place.folder, "file") };
  await expect(openClient({ ...on, env }, { service: paid })).rejects.toMatchObject({
    name: "EarlyExit",
    exit: "usage",
    message: expect.stringMatching(/from now on: set XDG_STATE_HOME to a folder that this user can write$/),
  });
});

test("a request that the spend log refuses is not sent, and gives its slot in the quota back", async () => {
  const { on, paid, place } = await libraryPlace();
  const client = await openClient(on, { service: paid });
  await client.generate(fox);
  const db = openSqlite(join(place.root, "state", "bulkgen", "accounts.db"));
  const requests = () => db.prepare("SELECT count(*) FROM requests").pluck().get();
  const before = requests();
  db.exec("CREATE TRIGGER full BEFORE INSERT ON spend_log BEGIN SELECT RAISE(ABORT, 'disk full'); END");
  await expect(client.generate(fox)).rejects.toThrow("disk full");
  expect(requests()).toBe(before);
  db.close();
  expect((await client.me()).credits.balance).toBe(499);
  await client.close();
});

test("calls at the same time are sent as fast as the lanes allow: those that wait keep no slot from the others", async () => {
  const { on, paid, place } = await libraryPlace({
    plan: "Starter",
    faults: { rules: [{ fault: { kind: "slow-answer", delayMs: 500 }, on: ["generate"], every: 1 }] },
  });
  const client = await openClient(on, { service: paid });
  const calls = Array.from({ length: 12 }, (_, number) =>
    client.generate({ ...fox, prompt: `fox ${number}` }),
  );
  await skippingClock.during(Promise.all(calls));
  const db = openSqlite(join(place.root, "state", "bulkgen", "accounts.db"));
  const reserved = db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'requests'").pluck().get();
  db.close();
  // GET me, GET models and twelve paid requests.
  expect(reserved).toBe(14);
  await client.close();
});

test("every call says in the same way that the day's requests are used up", async () => {
  const { on, paid, place } = await libraryPlace({ plan: "Starter" });
  const client = await openClient(on, { service: paid });
  await client.me();
  const db = openSqlite(join(place.root, "state", "bulkgen", "accounts.db"));
  const sent = db.prepare(
    "INSERT INTO requests (account_id, endpoint, sent_at, ended_at) SELECT id, 'task', ?, ? FROM accounts",
  );
  const now = skippingClock.now();
  for (let request = 0; request < 1_000; request++) sent.run(now - 3_600_000, now - 3_600_000);
  db.close();
  const calls = [
    () => client.me(),
    () => client.models(),
    () => client.task("1"),
    () => client.generate(fox),
  ];
  for (const call of calls) await expect(call()).rejects.toBeInstanceOf(NoRequestsUntil);
  await client.close();
});

test("a slot in the quota that an interrupted call waits for costs nothing", async () => {
  const { on, sandbox } = await libraryPlace();
  const ended = new AbortController();
  const client = await openClient(on, { service: sandbox, signal: ended.signal });
  await client.generate(fox);
  ended.abort();
  await expect(client.generate(fox)).rejects.toMatchObject({ kind: "interrupted" });
  await client.close();
});

test.each([
  [{ apiKey: "secret" }, "wrong form"],
  [{ apiKey: undefined as unknown as string }, "service.apiKey: expected a text, got undefined"],
  [{ baseUrl: undefined as unknown as string }, "check that the variable is set"],
  [{ baseUrl: "http://service.example" }, "http only for this machine"],
  [
    { sandbox: true, apiKey: `svc_${"z".repeat(32)}` },
    "sandbox: expected the address and the key of a sandbox",
  ],
  [{ sandbox: true, baseUrl: "https://service.example" }, "sandbox: expected"],
])("refuses %j before anything is sent", async (change, message) => {
  const { on, sandbox, paid } = await libraryPlace();
  const given = { ...("sandbox" in change ? sandbox : paid), ...change };
  await expect(openClient(on, { service: given })).rejects.toThrow(message);
});

test("a request with a misspelled field is refused before it is sent, by the compiler too", async () => {
  const { on, sandbox } = await libraryPlace();
  const client = await openClient(on, { service: sandbox });
  // @ts-expect-error It is called params.
  await expect(client.generate({ ...fox, parameters: { aspect_ratio: "1:1" } })).rejects.toThrow(
    /nothing was sent[\s\S]*"parameters"/,
  );
  const number = { ...fox, params: { seed: 5 as unknown as string } };
  await expect(client.generate(number)).rejects.toThrow(/expected string[\s\S]*params\.seed/);
  expect((await client.me()).credits.balance).toBe(500);
  await client.close();
});

test.each([
  [{ onDailyLimt: "wait" }, 'unknown setting "onDailyLimt"; did you mean "onDailyLimit"?'],
  [{ onDailyLimit: "Wait" }, /^onDailyLimit: .*"stop"\|"wait"/],
  [{ signal: {} }, "signal: expected an AbortSignal"],
  [{ log: console.log }, "log: expected an object with the functions debug, info, warn and error"],
])("refuses the settings %j, as those of a run", async (slip, message) => {
  const { on, sandbox } = await libraryPlace();
  const refused = expect(openClient(on, { service: sandbox, ...(slip as object) })).rejects;
  await refused.toThrow(RangeError);
  await refused.toThrow(message);
});

test("P21: what a program prints of a client or a workspace shows no variable and no key", async () => {
  const { on, paid, place } = await libraryPlace();
  const secret = "aws-secret-of-the-environment";
  const shown = (thing: object) => inspect(thing, { depth: 20, showHidden: true });
  const at = { ...on, env: { ...on.env, AWS_SECRET_ACCESS_KEY: secret, BULKGEN_API_KEY: paid.apiKey } };
  const client = await openClient(at, { service: paid });
  await client.generate(fox);
  place.write("set.csv", "id,model,prompt\na,aurora-image-mini,a red fox\n");
  await all(runManifest(at, "set.csv", { service: paid, maxCredits: 1 }));
  const reader = await openReader(at, place.folder, {});
  const printed = shown(client) + shown(reader);
  expect(printed).not.toContain(secret);
  expect(printed).not.toContain(paid.apiKey);
  await reader.close();
  await client.close();
});

test("a closed client says that it is closed; closing it again does no harm", async () => {
  const { on, sandbox } = await libraryPlace();
  const client = await openClient(on, { service: sandbox });
  await client.close();
  await client.close();
  await expect(client.me()).rejects.toThrow("the client is closed");
  await expect(client.generate(fox)).rejects.toThrow("the client is closed");
});

test("a fault that does not exist is refused with the names of those that do", async () => {
  const rules = [{ fault: "lost" as "lost-reply", on: ["generate" as const], at: [1] }];
  const started = libraryPlace({ faults: { rules } });
  await expect(started).rejects.toThrow(RangeError);
  await expect(started).rejects.toThrow(/'lost-reply'[\s\S]*at rules\[0\]/);
});
