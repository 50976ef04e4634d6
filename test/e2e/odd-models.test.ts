import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { models, type Script, startService } from "./service.js";
import { sheet } from "./sheet.js";

const [plain] = models.models as [(typeof models.models)[0]];

/** A service whose list of models is another one; `text` is the list as it goes over the wire. */
function listing(list: readonly object[], change: (text: string) => string = (text) => text): Script {
  const text = change(JSON.stringify({ ...models, models: list }));
  return ({ what }) => (what === "GET models" ? { text } : "serve");
}

test.each(["__proto__", "constructor", "toString", "hasOwnProperty"])(
  "a plan, an input type and a category called %s are unknown ones like any other",
  async (word) => {
    const script = listing([{ ...plain, input_type: word, category: word }]);
    const service = await startService({ plan: word, script });
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    expect(await run(place, ["plan", "set.csv"], service)).toMatchObject({
      code: 0,
      stderr: expect.any(String),
    });
    const end = await run(place, ["run", "set.csv", "--yes"], service);
    expect(end.code, end.stderr).toBe(0);
    expect(service.made).toHaveLength(2);
  },
);

test.each(["1e308", "1".repeat(400), "-1", '"two"', "null"])(
  "a price of %s leaves the model out: a problem of the rows that name it, and of no others",
  async (price) => {
    const odd = { ...plain, model_key: "odd-image", credits_cost: "PRICE" };
    const script = listing([plain, odd], (text) => text.replace('"PRICE"', price));
    const service = await startService({ script });
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    place.write("odd.csv", sheet(2, "odd-image"));
    const end = await run(place, ["run", "set.csv", "--yes"], service);
    expect(end.code, end.stderr).toBe(0);
    expect(end.stderr).toContain("price cannot be used: odd-image");
    const refused = await run(place, ["run", "odd.csv", "--yes"], service);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(
      'the service lists model "odd-image" without a price that can be used, so nothing is bought of it',
    );
    expect(service.made).toHaveLength(2);
  },
);

test("of two models with one key the first counts, with a warning", async () => {
  const script = listing([plain, { ...plain, credits_cost: 77 }]);
  const service = await startService({ script });
  const place = newPlace();
  place.write("set.csv", sheet(2, "plain-image"));
  const end = await run(place, ["run", "set.csv", "--yes"], service);
  expect(end.code, end.stderr).toBe(0);
  expect(end.stderr).toContain("listed twice: plain-image; the first counts");
  expect(service.made).toHaveLength(2);
});

test("a typing error in --model or in a field of a row is named, with what was meant", async () => {
  const service = await startService();
  const place = newPlace();
  const row = { id: "a", model: "plain-image", promt: "a mug" };
  place.write("set.json", JSON.stringify({ prompt: "a bowl", rows: [row] }));
  const end = await run(place, ["plan", "set.json", "--model", "plain-imgae"], service);
  expect(end.stdout).toContain(
    '- --model plain-imgae is not a model of the service; did you mean "plain-image"?',
  );
  expect(end.stdout).toContain('- column "promt" is not used; did you mean "prompt"?');
});
