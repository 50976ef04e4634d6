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
