import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { models, startService } from "./service.js";
import { sheet } from "./sheet.js";

test("P7: a list price that has risen is planned, whatever was charged before", async () => {
  const service = await startService({ balance: 100 });
  const place = newPlace();
  place.write("set.csv", sheet(2, "plain-image"));
  const first = await run(place, ["run", "set.csv", "--yes"], service);
  expect(first, first.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/^credits +4 spent/m) });
  place.write("set.csv", sheet(5, "plain-image"));
  const neededAt = async (price: number) => {
    const listed = { ...models, models: models.models.map((model) => ({ ...model, credits_cost: price })) };
    service.script(({ what }) => (what === "GET models" ? { json: listed } : "serve"));
    const planned = await run(place, ["plan", "set.csv", "--json"], service);
    return (JSON.parse(planned.stdout) as { money: { needed: number } }).money.needed;
  };
  expect(await neededAt(2)).toBe(6);
  expect(await neededAt(3)).toBe(9);
  // Nobody has been charged the new price yet, and it stays.
  expect(await neededAt(3)).toBe(9);
});
