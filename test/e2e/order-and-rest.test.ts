import { describe, expect, test } from "vitest";
import { credits, noCredits } from "../../src/core/money.js";
import { agreedTo, type Offer } from "../../src/job/orders/request.js";
import { newPlace, run, started } from "./command.js";
import { startService } from "./service.js";
import { sheet } from "./sheet.js";

const price = 2;

/** A run of five, interrupted after the answer about its second item: two are paid for, three are planned. */
async function interrupted() {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(5, "plain-image"));
  const running = started(place, ["run", "set.csv", "--yes", "--lanes", "1"], service);
  let posts = 0;
  service.script(({ what }) => {
    if (what === "POST generate" && ++posts === 2) running.interrupt();
    return "serve";
  });
  expect((await running.ended).code).toBe(130);
  service.script(() => "serve");
  return { service, place };
}

describe.concurrent("an order about one item of a run with planned items", () => {
  test("is not carried out before the price of all of them is agreed to", async () => {
    const { service, place } = await interrupted();
    expect(service.made).toHaveLength(2);
    const asked = await run(place, ["redo", "a01"], { ...service, columns: 80 });
    expect(asked.stderr).toContain(`continuing the run also submits 3 planned items, ${3 * price} credits`);
    expect(asked.code).toBe(2);
    expect(service.made).toHaveLength(2);
    const agreed = await run(place, ["redo", "a01", "--yes"], service);
    expect(agreed, agreed.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(6);
  });

  test("asks for the others also if it costs nothing itself, and not if there are none", async () => {
    const asked: Offer[] = [];
    const declined = async (offer: Offer) => {
      asked.push(offer);
      return false;
    };
    const wanted = { order: { do: "refetch", items: [1] }, offered: [] } as const;
    expect(await agreedTo(wanted, declined)).toBe(wanted.order);
    const rest = { items: 3, credits: credits(6) };
    await expect(agreedTo(wanted, declined, rest)).rejects.toThrow("not confirmed; nothing was submitted");
    expect(asked).toEqual([{ items: [], credits: noCredits, rest, note: null }]);
  });
});
