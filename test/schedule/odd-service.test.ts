import { expect, test } from "vitest";
import { Daemon, type DaemonEvent } from "../../src/schedule/daemon.js";
import { endOf } from "../../src/schedule/launch.js";
import { openSchedules } from "../../src/store/schedules.js";
import { eventually, newPlace, started } from "../e2e/command.js";
import { models, type Script, startService } from "../e2e/service.js";
import { ManualClock } from "../manual-clock.js";

/**
 * A daemon whose runs meet odd answers of the service: it goes on, each run's record says how it ended, and the next run makes
 * what is left, without paying for anything twice. The runs are real commands within this process.
 */
const page = "<!DOCTYPE html><title>Attention Required! | Cloudflare</title>";
const oddModel = { model_key: "odd", parameters: [{ key: "q", options: ["a"], default: null }] };
const free = { ...models.models[0], model_key: "free-image", credits_cost: 0 };
const oddMe = { user: null, credits: [], subscription: "active", api_key: 7 };
const day = 86_400_000;
const due = Date.UTC(2026, 10, 21, 2);

const isOdd = (body: string) => body.includes("odd");
const attacks: [name: string, script: Script, made: number][] = [
  [
    "a model with odd shapes",
    ({ what }) =>
      what === "GET models" ? { json: { ...models, models: [...models.models, oddModel, null] } } : "serve",
    2,
  ],
  ["no list of models", ({ what }) => (what === "GET models" ? { text: page } : "serve"), 2],
  [
    "422 for one prompt",
    ({ what, body }) =>
      what === "POST generate" && isOdd(body) ? { status: 422, json: { detail: "too long" } } : "serve",
    1,
  ],
  [
    "a firewall's page for one prompt",
    ({ what, body }) => (what === "POST generate" && isOdd(body) ? { status: 403, text: page } : "serve"),
    1,
  ],
  [
    "completed without an address",
    ({ what }) =>
      what === "GET task"
        ? { json: { status: "completed", output_urls: [null], completed_at: "2026-01-01T00:00:00Z" } }
        : "serve",
    2,
  ],
  ["an odd record of the account", ({ what }) => (what === "GET me" ? { json: oddMe } : "serve"), 2],
  [
    "a firewall's page for the account",
    ({ what }) => (what === "GET me" ? { status: 403, text: page } : "serve"),
    2,
  ],
  // It waits until it is known whether they were charged, by the clock of the runs, which is not the daemon's.
  [
    "lost answers",
    ({ what }) => (what === "POST generate" ? { status: 502, text: "bad gateway" } : "serve"),
    0,
  ],
];

test.each(attacks)("a schedule daemon goes on and tells: %s", async (name, script, made) => {
  const service = await startService({ script });
  const place = newPlace();
  const model = name === "lost answers" ? "free-image" : "plain-image";
  if (name === "lost answers")
    service.script((asked) =>
      asked.what === "GET models" ? { json: { ...models, models: [...models.models, free] } } : script(asked),
    );
  place.write("set.csv", `id,model,prompt\na,${model},a cup\nb,${model},an odd cup\n`);
  const clock = new ManualClock(due - 1);
  const schedules = openSchedules(":memory:", clock);
  await schedules.add({
    name: "nightly",
    manifest: "set.csv",
    cron: "0 2 * * *",
    zone: "UTC",
    missed: "once",
    flags: [],
    seenUntil: clock.now(),
    pausedAt: null,
  });
  const events: DaemonEvent[] = [];
  const said: string[] = [];
  let underWay = 0;
  const daemon = new Daemon({
    whatToDo: () => "",
    schedules,
    clock,
    log: {
      debug() {},
      info: (_, line) => said.push(line),
      warn: (_, line) => said.push(line),
      error: (_, line) => said.push(line),
    },
    claimForAll: async () => new Map(),
    launch({ command, words }) {
      underWay++;
      const running = started(place, [command, "--json", "--quiet", ...words], service);
      const ended = running.ended.then(({ code, stdout, stderr }) => {
        underWay--;
        return endOf({ exit: code, signal: null, text: stdout, said: stderr }, clock.now());
      });
      return { ended, stop: () => running.interrupt() };
    },
    notify: (_, event) => events.push(event),
  });
  const stop = new AbortController();
  const over = daemon.go(stop.signal);
  const night = async (number: number) => {
    clock.advance(number === 0 ? 1 : day);
    await eventually(async () => {
      const [run] = await schedules.scheduledRuns("nightly", 1);
      return (run?.dueAt === due + number * day && underWay === 0 && run.state !== "running") || null;
    });
    return (await schedules.scheduledRuns("nightly", 1))[0];
  };
  const first = await night(0);
  expect(["ended", "waiting"]).toContain(first?.state);
  expect(first?.note, name).toMatch(/\S/);
  expect(`${first?.note} ${said.join(" ")}`).not.toMatch(/undefined|NaN|\[object|TypeError/);
  expect([1, 130]).not.toContain(first?.exit);
  expect(daemon.trouble).toBeNull();
  service.script(({ what }) =>
    what === "GET models" ? { json: { ...models, models: [...models.models, free] } } : "serve",
  );
  await night(1);
  const prompts = service.made.map(({ prompt }) => prompt);
  expect(new Set(prompts).size, "made twice").toBe(prompts.length);
  expect(prompts.length).toBeGreaterThanOrEqual(made);
  stop.abort();
  await over;
  schedules.close();
});
