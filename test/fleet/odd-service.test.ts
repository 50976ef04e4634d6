import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, newPlace, run, start, started } from "../e2e/command.js";
import { me, models, type Script, startService } from "../e2e/service.js";
import { sheet } from "../e2e/sheet.js";
import { startPostgres, type TestPostgres } from "./postgres.js";

/** Workers that meet odd answers of the service go on and tell: nobody watches them. */
let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

const page = "<!DOCTYPE html><title>Attention Required! | Cloudflare</title>";
const odd = { model_key: "odd", parameters: [{ key: "q", options: ["a"], default: null }] };

/** Odd for the first two answers only. */
function twice(script: Script): Script {
  let left = 2;
  return async (asked) => {
    const answer = await script(asked);
    return answer === "serve" || left-- > 0 ? answer : "serve";
  };
}

/** What it answers while the worker takes over. */
const attacks: [name: string, script: Script][] = [
  [
    "a model with odd shapes",
    ({ what }) =>
      what === "GET models" ? { json: { ...models, models: [odd, null, ...models.models] } } : "serve",
  ],
  [
    "422 for every prompt",
    ({ what }) => (what === "POST generate" ? { status: 422, json: { detail: "too long" } } : "serve"),
  ],
  [
    "a firewall's page for every prompt",
    ({ what }) => (what === "POST generate" ? { status: 403, text: page } : "serve"),
  ],
  [
    "completed without an address",
    ({ what }) =>
      what === "GET task"
        ? { json: { status: "completed", output_urls: [null], completed_at: "2026-01-01T00:00:00Z" } }
        : "serve",
  ],
  [
    "the account of somebody else for a moment",
    twice(({ what }) => {
      const other = me({ balance: 100 });
      return what === "GET me"
        ? { json: { ...other, user: { ...other.user, id: "somebody-else" } } }
        : "serve";
    }),
  ],
  [
    "a firewall's page for the account",
    ({ what }) => (what === "GET me" ? { status: 403, text: page } : "serve"),
  ],
  [
    "an odd record of the account",
    // Without its counters it takes minutes until the lost request is judged.
    twice(({ what }) =>
      what === "GET me" ? { json: { user: null, credits: [], subscription: "active", api_key: 7 } } : "serve",
    ),
  ],
];

/** Of the others, each takes as long as this one or longer: the short form has it alone. */
const first = "a model with odd shapes";
const told = "a worker that stands by goes on and tells: %s";
test.each(attacks.filter(([name]) => name === first))(told, { timeout: 120_000 }, goesOn);
test.each(attacks.filter(([name]) => name !== first))(told, { timeout: 120_000, tags: ["long"] }, goesOn);

async function goesOn(_: string, script: Script): Promise<void> {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(3, "plain-image"));
  const how = { env: { ...service.env, BULKGEN_DATABASE_URL: postgres.newWorkspace() } };
  let isKilled = false;
  service.script(async (asked) => {
    if (isKilled) return script(asked);
    // The process is killed with a request in flight.
    if (asked.what === "POST generate") await new Promise(() => {});
    return "serve";
  });
  const worker = started(place, ["worker", "--downloads", "2"], { ...how, serves: true });
  await worker.prints(/worker \d+ on \S+ is ready/);
  const running = start(place, ["run", "set.csv", "--yes", "--lanes", "1"], how);
  await service.wasAsked("POST generate", 1);
  running.signal("SIGKILL");
  await running.ended;
  isKilled = true;
  await worker.prints(/run 1 ended: \w+|no run can be continued for now/);
  // It still takes what comes.
  service.script(() => "serve");
  place.write("next.csv", sheet(2, "plain-image").replaceAll("a0", "b0"));
  await eventually(async () => {
    const made = await run(place, ["run", "next.csv", "--yes", "--no-work"], how);
    return made.code === 9 ? null : made;
  });
  worker.interrupt();
  const ended = await worker.ended;
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  expect(ended.stderr).not.toMatch(/undefined|NaN|\[object|TypeError/);
  const prompts = service.made.map(({ prompt }) => prompt);
  expect(new Set(prompts).size).toBe(prompts.length);
}
