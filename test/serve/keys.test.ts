import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, run } from "../e2e/command.js";
import { openAi, Place } from "./place.js";

/** A service whose pictures cost 4 credits, and the commands of the one who keeps it. */
async function opened() {
  const upstream = await openAi();
  const service = await new Place(`
providers: { vendor: { kind: openai, base_url: "${upstream.url}/v1", key_env: KEY } }
models: [{ key: hero, provider: vendor, category: image, credits: 4, request: { model: gpt-image-2 } }]
`).open();
  const shell = newPlace();
  const state = ["--state", join(service.folder, "state")];
  // The service was started beside the commands.
  expect((await run(shell, ["trust", "--yes", ...state])).code).toBe(0);
  const keys = (line: string) => run(shell, ["serve", "keys", ...line.split(" "), ...state]);
  const json = async (line: string) => JSON.parse((await keys(`${line} --json`)).stdout);
  const create = async (line: string) => {
    service.key = (await json(`create ${line}`)).key;
  };
  const make = () => service.call("POST", "/api/v1/generate", { model: "hero", prompt: "a kite" });
  return { service, keys, json, create, make };
}

describe("bulkgen serve keys edit", () => {
  test("a budget that is raised counts from the next request on, while the service runs", async () => {
    const { json, create, make } = await opened();
    await create("anna --credits-per-day 4 --credits-per-month 8");
    expect([(await make()).status, (await make()).status]).toEqual([200, 402]);
    expect(await json("edit anna --credits-per-day none --plan Enterprise")).toMatchObject({
      name: "anna",
      plan: "Enterprise",
      credits_per_day: null,
      credits_per_month: 8,
    });
    expect([(await make()).status, (await make()).status]).toEqual([200, 402]);
    await json("edit anna --credits-per-month 12.5");
    expect([(await make()).status, (await make()).status]).toEqual([200, 402]);
  });

  test("credits in all count what was spent before", async () => {
    const { service, json, create, make } = await opened();
    await create("anna --credits 4");
    expect([(await make()).status, (await make()).status]).toEqual([200, 402]);
    expect(await json("edit anna --credits 10")).toMatchObject({ credits_used: 4, credits_left: 6 });
    expect([(await make()).status, (await make()).status]).toEqual([200, 402]);
    expect(await json("edit anna --credits none")).toMatchObject({ credits_left: null });
    expect((await make()).status).toBe(200);
    expect(await json("edit anna --credits 10")).toMatchObject({ credits_used: 12, credits_left: 0 });
    await service.restart();
    expect((await make()).status).toBe(402);
  });

  test("a budget may be a fraction of a credit, in a new key too", async () => {
    const { service, json, create, make } = await opened();
    await create("anna --credits-per-month 4.5");
    expect([(await make()).status, (await make()).status]).toEqual([200, 402]);
    expect((await service.me()).credits.balance).toBe(0.5);
    expect(await json("edit anna --credits-per-month 8.25")).toMatchObject({ credits_per_month: 8.25 });
  });

  test("says what the key may spend now", async () => {
    const { keys, create } = await opened();
    await create("anna --credits-per-day 4");
    const { code, stdout } = await keys("edit anna --credits-per-day 40");
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^name +plan[^\n]*\nanna +Pro .* 40/)]);
  });

  test.each([
    ["edit bob --credits 4", 'there is no valid key "bob". `bulkgen serve keys list` lists them.'],
    ["edit anna", "expected a change, such as --credits-per-day 50, or none for no limit"],
    ["edit anna --credits many", "expected credits, or none for no limit"],
  ])("%s is refused", async (line, message) => {
    const { keys, create } = await opened();
    await create("anna");
    const { code, stderr } = await keys(line);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});

describe("what a key has left", () => {
  test("is told under its tightest budget, with its end, to the client and to the owner", async () => {
    const { service, create, make } = await opened();
    await create("anna --credits-per-month 20 --credits-per-day 6");
    await make();
    const owners = () =>
      service.service.keys.withLeft(service.clock.now()).find(({ name }) => name === "anna")?.left;
    const tomorrow = Date.UTC(2026, 10, 29);
    expect(owners()).toEqual({ credits: 2, of: 6, per: "day", renewsAt: tomorrow });
    expect(await service.me()).toMatchObject({
      credits: { balance: 2 },
      service: { budget: { left: 2, of: 6, per: "day", renews_at: "2026-11-29T00:00:00.000Z" } },
    });
    expect((await make()).status).toBe(402);
    for (let day = 0; day < 2; day++) {
      service.clock.advance(24 * 3_600_000);
      // Whatever the first of the month is, the day has at most 6.
      expect(owners()).toMatchObject({ credits: 6, per: "day" });
      await make();
    }
  });

  test("is what is left in all if that is less, and nothing is renewed then", async () => {
    const { service, create } = await opened();
    await create("anna --credits 4 --credits-per-day 6");
    const [left] = service.service.keys
      .withLeft(service.clock.now())
      .flatMap(({ name, left }) => (name === "anna" ? [left] : []));
    expect(left).toEqual({ credits: 4, of: null, per: null, renewsAt: null });
    expect((await service.me()).service.budget).toBeUndefined();
  });

  test("stands in the list", async () => {
    const { service, keys, json, create } = await opened();
    await create("anna --credits-per-day 6");
    await create("bob --credits-per-month 7 --credits 70");
    await create("eve --credits 8");
    const { stdout } = await keys("list");
    expect(stdout).toMatch(/anybody .* no limit +no limit +no limit/);
    expect(stdout).toMatch(/anna .* 6 today +no limit +6/);
    expect(stdout).toMatch(/bob .* 7 this month +7 +no limit/);
    expect(stdout).toMatch(/eve .* 8 +no limit +no limit/);
    const bob = (await json("list")).find(({ name }: { name: string }) => name === "bob");
    expect(bob).toMatchObject({ credits_left: 7, credits_left_per: "month", renews_at: expect.any(String) });
    expect((await service.me()).credits.balance).toBe(8);
  });

  test("a key without a budget of a month is told of no credits a month", async () => {
    const { service, create } = await opened();
    await create("anna --credits 100");
    expect((await service.me()).subscription.credits_per_month).toBe(0);
    await create("bob --credits-per-month 30");
    expect((await service.me()).subscription.credits_per_month).toBe(30);
  });
});
