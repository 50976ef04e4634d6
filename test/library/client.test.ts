import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import type { ServiceError } from "../../src/client/service.js";
import { NoRequestsUntil } from "../../src/core/quota/quota.js";
import { type Client, openClient } from "../../src/library/client.js";
import { runManifest } from "../../src/library/run.js";
import { openReader } from "../../src/library/workspace.js";
import { openSqlite } from "../../src/sqlite.js";
import { afterThisFile } from "../after-file.js";
import { skippingClock } from "../e2e/skipping-clock.js";
import { all, libraryPlace } from "./place.js";

/** Every call of a client. */
const calls = (client: Client) => [() => client.me(), () => client.models(), () => client.task("1")];

test("reads models by category and without parameters, a task and the account", async () => {
  const { on, sandbox, place } = await libraryPlace();
  place.write("set.csv", "id,model,prompt\na,aurora-image-mini,a red fox\n");
  const events = await all(runManifest(on, "set.csv", { service: sandbox, maxCredits: 1 }));
  const taskId = events.flatMap((event) => (event.event === "submitted" ? [event.taskId] : []))[0] ?? "";
  const client = await openClient(on, { service: sandbox });
  const { models } = await client.models({ category: "audio", includeParameters: false });
  expect(new Set(models.map(({ category }) => category))).toEqual(new Set(["audio"]));
  expect(models.flatMap(({ parameters = [] }) => parameters)).toEqual([]);
  expect(await client.task(taskId)).toMatchObject({ task_id: taskId, status: "completed" });
  expect((await client.me()).credits.balance).toBe(499);
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
  for (const call of calls(client))
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
  const error = (await client.me().catch((thrown: unknown) => thrown)) as ServiceError;
  expect(error).toMatchObject({ name: "ServiceError", kind: "key", code: "INVALID_API_KEY" });
  expect(`${error.stack}${JSON.stringify(error)}`).not.toContain("zzzz");
  await client.close();
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
  for (const call of calls(client)) await expect(call()).rejects.toBeInstanceOf(NoRequestsUntil);
  await client.close();
});

test.each([
  ["its signal", (_: Client, ended: AbortController) => ended.abort()],
  ["close", (client: Client) => client.close()],
])("%s interrupts a request in flight", async (_, end) => {
  const { on, sandbox } = await libraryPlace({
    faults: { rules: [{ fault: { kind: "slow-answer", delayMs: 3_600_000 }, on: ["me"], at: [1] }] },
  });
  const ended = new AbortController();
  const client = await openClient(on, { service: sandbox, signal: ended.signal });
  const interrupted = expect(client.me()).rejects.toMatchObject({ kind: "interrupted" });
  await end(client, ended);
  await interrupted;
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
  await client.me();
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
  for (const call of calls(client)) await expect(call()).rejects.toThrow("the client is closed");
});

test("a fault that does not exist is refused with the names of those that do", async () => {
  const rules = [{ fault: "lost" as "lost-reply", on: ["generate" as const], at: [1] }];
  const started = libraryPlace({ faults: { rules } });
  await expect(started).rejects.toThrow(RangeError);
  await expect(started).rejects.toThrow(/'lost-reply'[\s\S]*at rules\[0\]/);
});
