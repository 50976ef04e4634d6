import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openLog } from "../../src/cli/output/log.js";
import type { Machine } from "../../src/machine.js";
import { newPlace, run } from "../e2e/command.js";
import { testKey } from "../e2e/leaked-key.js";
import { ManualClock } from "../manual-clock.js";
import { answering, json, me } from "./service.js";

let service: Awaited<ReturnType<typeof answering>>;

beforeEach(async () => {
  service = await answering((_, response) => json(response, 200, me));
});
afterEach(() => service.close());

async function logOf(words: readonly string[], how: { columns?: number; env?: Record<string, string> } = {}) {
  const env = { BULKGEN_BASE_URL: service.url, BULKGEN_API_KEY: testKey, ...how.env };
  const ended = await run(newPlace(), ["account", "--log-level", "debug", ...words], { ...how, env });
  expect(ended.code, ended.stderr).toBe(0);
  return ended.stderr.trim().split("\n");
}

test("the log of a nightly run is for people: a line for each event, with date, time and level, without colour", async () => {
  for (const line of await logOf([]))
    expect(line).toMatch(/^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] DEBUG: [^{]+/);
});

test("on a terminal the log leaves out the date, and NO_COLOR its colours", async () => {
  const [line] = await logOf([], { columns: 80, env: { NO_COLOR: "1" } });
  expect(line).toMatch(/^\[\d\d:\d\d:\d\d\] DEBUG: /);
  expect((await logOf([], { columns: 80, env: { NO_COLOR: "" } })).join("\n")).toContain("\u001b[");
});

test("programs ask for the log as JSON, which names the level and the time", async () => {
  const documents = (await logOf(["--log-format", "json"])).map((line): unknown => JSON.parse(line));
  for (const document of documents)
    expect(document).toMatchObject({
      level: "debug",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
      msg: expect.any(String) as string,
    });
});

/** A service that counts every request with the key, also those to a wrong path. */
async function countingAll() {
  let requests = 0;
  return answering((request, response) => {
    requests++;
    const counted = { ...me, api_key: { ...me.api_key, requests_count: requests } };
    if (request.url === "/api/v1/me") json(response, 200, counted);
    else json(response, 404, { error: { code: "NOT_FOUND", message: "no" } });
  });
}

test("own requests that the service refused are not taken for somebody else's", async () => {
  const counting = await countingAll();
  const place = newPlace();
  const env = { BULKGEN_BASE_URL: counting.url, BULKGEN_API_KEY: testKey };
  const ends = [];
  for (const command of ["account", "models", "account"]) ends.push(await run(place, [command], { env }));
  await counting.close();
  expect(ends.map(({ code }) => code)).toEqual([0, 4, 0]);
  expect(ends[2]?.stderr).toBe("");
});

test("own requests to a mistyped address of the service are not taken for somebody else's", async () => {
  const counting = await countingAll();
  const place = newPlace();
  const account = (path: string) =>
    run(place, ["account"], {
      env: { BULKGEN_BASE_URL: counting.url + path, BULKGEN_API_KEY: testKey },
    });
  const ends = [await account(""), await account("/wrong"), await account("")];
  await counting.close();
  expect(ends.map(({ code }) => code)).toEqual([0, 4, 0]);
  expect(ends[2]?.stderr).toBe("");
});

test("logs that are opened one after the other, as a worker does, leave nothing on stderr that listens", async () => {
  const stderr = new PassThrough();
  let written = "";
  stderr.setEncoding("utf8").on("data", (text: string) => {
    written += text;
  });
  const before = stderr.eventNames().map((name) => [name, stderr.listenerCount(name)]);
  const machine = { stderr, env: {}, clock: new ManualClock() } as unknown as Machine;
  for (let opened = 0; opened < 12; opened++) {
    const log = await openLog({ logLevel: "warn", logFormat: "text" }, machine);
    log.warn({}, `log ${opened}`);
  }
  await vi.waitFor(() => expect(written).toContain("log 11"));
  expect(stderr.eventNames().map((name) => [name, stderr.listenerCount(name)])).toEqual(before);
});

test("a wrong level or format names the ones that exist", async () => {
  for (const [flag, known] of [
    ["--log-level", "debug, info, warn, error, silent"],
    ["--log-format", "text, json"],
  ] as const) {
    const ended = await run(newPlace(), ["account", flag, "loud"]);
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(`one of ${known}, got "loud"`) });
  }
});
