import { constants } from "node:buffer";
import { describe, expect, test } from "vitest";
import { credits, noCredits } from "../../src/core/money.js";
import type { PlannedItem } from "../../src/core/ports/draft.js";
import type { Plan } from "../../src/plan/plan.js";
import { driftOf, readSavedPlan, type SavedPlan, savePlan } from "../../src/plan/saved-plan.js";
import { SavedItems } from "../../src/store/saved-items.js";
import { jsonPieces } from "../../src/text/pieces.js";
import { amount } from "../fuzz/amount.js";

const item = (id: string, change: Partial<PlannedItem> = {}): PlannedItem => ({
  key: `k1:${id}`,
  edition: "",
  occurrence: 1,
  variant: 1,
  position: 1,
  priority: 0,
  rowNumber: 2,
  rowId: id,
  name: id,
  model: "plain-image",
  category: "image",
  prompt: `a ${id}`,
  params: {},
  inputs: {},
  cells: [],
  price: credits(4),
  state: "new",
  due: true,
  order: 0,
  fits: true,
  ...change,
});

const four = [item("cup"), item("jug"), item("pot"), item("bowl")];

function plan(change: Partial<Plan> & { balance?: number } = {}): Plan {
  const { balance = 100, ...rest } = change;
  return {
    job: "set",
    file: "set.csv",
    origin: "https://a.example",
    user: "ada",
    edition: "",
    items: four,
    unselected: [],
    money: { balance: credits(balance) } as Plan["money"],
    ordered: { items: 0, credits: noCredits },
    requests: { atLeast: 8, plan: "Pro", perMinute: 60, perDay: 10_000 },
    ...rest,
  } as Plan;
}

const place = { savedAt: "2026-11-21T02:00:00.000Z", manifest: "/m/set.csv", workspace: "/m" };
const finishAt = null;
const forecast = { requests: 9, ms: 1_000, binds: "minute", larger: null } as const;

const how = { ...place, sandbox: false, flags: [["--model", "x"]] };
/** The text of the file. */
const written = (now: Plan) => [...jsonPieces(savePlan(now, how), "\n")].join("");
const openItems = () => new SavedItems();
const read = (text: string) => readSavedPlan([Buffer.from(text)], openItems);
const reread = (now: Plan) => read(written(now)) as SavedPlan;

const saved = reread(plan());
const refused = (now: Plan, tolerance = 0) =>
  driftOf(saved, now, tolerance).flatMap((drift) => (drift.refused ? [drift.message] : []));

describe("a saved plan", () => {
  test("that is as it was has no drift; nor has one that became better", () => {
    expect(driftOf(saved, plan(), 0)).toEqual([]);
    const cheaper = four.map((each) => ({ ...each, price: credits(3) }));
    const requests = {
      atLeast: 8,
      plan: "Enterprise",
      perMinute: null,
      perDay: null,
      lanes: 1,
      forecast,
      finishAt,
    };
    expect(driftOf(saved, plan({ balance: 200, items: cheaper, requests }), 0)).toEqual([]);
  });

  test.each<[string, Partial<Plan> & { balance?: number }, string[]]>([
    [
      "a changed, a new and a missing row",
      { items: [item("cup", { key: "k1:other", prompt: "a mug" }), item("jug"), item("pot"), item("urn")] },
      [
        "manifest: row 2 (cup): prompt changed",
        "manifest: row 2 (urn) is new",
        "manifest: row 2 (bowl) is gone",
      ],
    ],
    [
      "a higher price",
      { items: four.map((each) => ({ ...each, price: credits(5) })) },
      ["price: plain-image was 4 credits, now 5"],
    ],
    [
      "a day that is too short",
      {
        requests: {
          atLeast: 8,
          plan: "Starter",
          perMinute: 30,
          perDay: 7,
          lanes: 1,
          forecast,
          finishAt,
        },
      },
      ["limit: at least 8 requests needed, 10000 a day when planned, now 7"],
    ],
    ["a balance that is too small", { balance: 15 }, ["balance: 16 credits needed, now 15"]],
    ["another account", { user: "bob" }, ["account: planned for ada, now bob"]],
    ["another service", { origin: "https://b" }, ["service: planned for https://a.example, now https://b"]],
    ["another edition", { edition: "#2" }, ["edition: planned for the first, now #2"]],
  ])("tells %s", (_, change, messages) => {
    expect(refused(plan(change))).toEqual(messages);
  });

  test("accepts as much drift as the tolerance allows, and reports it", () => {
    expect(refused(plan({ balance: 12 }), 24)).toHaveLength(1);
    expect(refused(plan({ balance: 12 }), 25)).toEqual([]);
    expect(driftOf(saved, plan({ balance: 12 }), 25)).toHaveLength(1);
    expect(refused(plan({ user: "bob" }), 100)).toHaveLength(1);
    expect(refused(plan({ items: four.slice(1) }), 25)).toEqual([]);
    expect(refused(plan({ items: four.slice(1) }), 24)).toHaveLength(1);
  });

  test("continues after a crash: what its own items cost is no drift", () => {
    const items = four.map((each, index) => ({ ...each, due: index > 1 }));
    expect(refused(plan({ items, balance: 8 }))).toEqual([]);
    expect(refused(plan({ items, balance: 7 }))).toEqual(["balance: 8 credits needed, now 7"]);
  });

  test("needs what failed items of its own cost once they are submitted again", () => {
    const items = four.map(({ rowId }) =>
      item(rowId, { due: false, state: rowId === "bowl" ? "failed" : "archived" }),
    );
    expect(refused(plan({ items, balance: 0 }))).toEqual([]);
    const again = items.map((each) => ({ ...each, due: each.state === "failed" }));
    expect(refused(plan({ items: again, balance: 4 }))).toEqual([]);
    expect(refused(plan({ items: again, balance: 3 }))).toEqual(["balance: 4 credits needed, now 3"]);
  });

  test("tells which items are due again, and takes them as its credits allow", () => {
    const failed = { state: "failed", due: false } as const;
    const before = [item("cup", failed), item("jug", failed), item("pot"), item("bowl")];
    const document = reread(plan({ items: before }));
    const again = before.map((each) => (each.rowId === "cup" ? item("cup", { state: "planned" }) : each));
    const drift = (tolerance: number) => driftOf(document, plan({ items: again }), tolerance);
    const message = "items: row 2 (cup) is due again, for 4 credits";
    expect(drift(49)).toEqual([{ message, refused: true }]);
    expect(drift(50)).toEqual([{ message, refused: false }]);
    expect(driftOf(document, plan({ items: before }), 0)).toEqual([]);
  });

  test("of failed rows does not miss those that are made by now", () => {
    expect(refused(plan({ items: four.slice(1), unselected: ["k1:cup"], balance: 96 }))).toEqual([]);
  });

  test.each([
    [{ bulkgen: "plan", version: 2 }, "expected a saved plan of version 1, got version 2"],
    [{ bulkgen: "plan", version: 1 }, "expected a saved plan; its savedAt is missing or damaged"],
  ])("refuses %j", (document, message) => {
    expect(() => read(JSON.stringify(document))).toThrow(message);
  });
});

describe("what has changed since a plan was saved", () => {
  const since = (before: Plan, now: Plan, tolerance = 0) =>
    driftOf(reread(before), now, tolerance).map(({ message }) => message);

  test("is told of the first eight rows, and counted beyond", () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => item(`new-${index}`));
    expect(since(plan(), plan({ items: [...four, ...many(8)] }))).toHaveLength(8);
    const told = since(plan(), plan({ items: [...four, ...many(10)] }));
    expect(told).toHaveLength(9);
    expect(told.at(-1)).toBe("manifest: 2 more rows differ");
    expect(since(plan(), plan({ items: [...four, ...many(9)] })).at(-1)).toBe("manifest: 1 more row differs");
  });

  test("names every field of a row, or its file if none differs", () => {
    const before = plan({ items: [item("cup", { params: { size: "2k" }, inputs: { image_url: "a.png" } })] });
    const now = (change: Partial<PlannedItem>) =>
      plan({ items: [item("cup", { key: "k1:new", ...change })] });
    expect(
      since(before, now({ model: "film", prompt: null, params: { size: "4k", hd: "1" }, inputs: {} })),
    ).toContain("manifest: row 2 (cup): model, prompt, params.size, image_url, params.hd changed");
    expect(since(before, now({ params: { size: "2k" }, inputs: { image_url: "a.png" } }))).toEqual([
      "manifest: row 2 (cup): its file or its order among identical rows changed",
    ]);
  });

  test("is not what changes neither what is made nor what it costs", () => {
    const before = plan({ balance: 1_000_000 });
    expect(since(before, plan({ balance: 980_000 }))).toEqual([]);
    expect(since(before, plan({ balance: 16 }))).toEqual([]);
    const moved = four
      .toReversed()
      .map((each, order) => ({ ...each, order, rowNumber: order + 2, position: order }));
    expect(since(before, plan({ items: moved }))).toEqual([]);
    const later = { ...plan().requests, forecast: { ...forecast, requests: 99, ms: 9e6 }, finishAt: 1 };
    expect(since(before, plan({ requests: later }))).toEqual([]);
    // What it did not cover when it was planned is not missing now.
    expect(since(plan({ balance: 10 }), plan({ balance: 10 }))).toEqual([]);
    expect(since(plan({ balance: 10 }), plan({ balance: 9 }))).toEqual(["balance: 10 credits needed, now 9"]);
  });

  test("is a limit that makes a day too short for it, and no other", () => {
    const limited = (perMinute: number | null, perDay: number | null = 10_000) =>
      plan({ requests: { atLeast: 8, plan: "Pro", perMinute, perDay, lanes: 1, forecast, finishAt } });
    expect(since(limited(null, null), limited(60, 4), 99)).toEqual([
      "limit: at least 8 requests needed, unlimited a day when planned, now 4",
    ]);
    expect(since(limited(null, null), limited(60, 8))).toEqual([]);
    expect(since(limited(60), limited(1))).toEqual([]);
    expect(since(limited(60, 7), limited(60, 5))).toEqual([]);
    expect(driftOf(reread(limited(60)), limited(60, 4), 100)).toMatchObject([{ refused: false }]);
    expect(driftOf(reread(limited(60)), limited(60, 4), 99)).toMatchObject([{ refused: true }]);
  });

  test("is a price of items that are still to be paid, told once for each model and price", () => {
    const dearer = four.map((each) => ({ ...each, price: credits(5), due: each.rowId !== "cup" }));
    expect(since(plan(), plan({ items: dearer, balance: 96 }))).toEqual([
      "price: plain-image was 4 credits, now 5",
    ]);
    const done = four.map((each) => ({ ...each, price: credits(5), due: false }));
    expect(since(plan(), plan({ items: done, balance: 84 }))).toEqual([]);
    const made = plan({ items: four.map((each) => ({ ...each, due: false })) });
    const again = driftOf(reread(made), plan({ items: dearer }), 25);
    expect(again.map(({ refused }) => refused)).toEqual([true, true, true, false]);
  });

  test("is no balance that is not told, and none that grew", () => {
    const untold = { money: { balance: null } as Plan["money"] };
    expect(since(plan(untold), plan())).toEqual([]);
    expect(since(plan(), plan(untold))).toEqual([]);
    expect(since(plan({ balance: 100 }), plan({ balance: 101 }))).toEqual([]);
    expect(reread(plan(untold)).balance).toBeNull();
  });

  test("is nothing else if the service, the account or the edition is another one", () => {
    const other = { items: [], balance: 0 };
    expect(since(plan(), plan({ ...other, edition: "#2", user: "bob" }))).toEqual([
      "account: planned for ada, now bob",
      "edition: planned for the first, now #2",
    ]);
    expect(since(plan({ edition: "#2" }), plan(other))).toEqual(["edition: planned for #2, now the first"]);
  });
});

test("a saved plan holds what it was made of and how", () => {
  expect(saved).toMatchObject({
    bulkgen: "plan",
    version: 1,
    ...place,
    sandbox: false,
    flags: [["--model", "x"]],
    origin: "https://a.example",
    user: "ada",
    edition: "",
    balance: 100,
    limits: { minute: 60, day: 10_000 },
  });
  expect(saved.items.at(0)).toEqual({
    key: "k1:cup",
    row: 2,
    id: "cup",
    model: "plain-image",
    credits: 4,
    due: true,
    content: { prompt: "a cup" },
  });
});

test("a document is a saved plan if it says so at its beginning", () => {
  const texts = [written(plan()), written(plan({ items: [] })), JSON.stringify(JSON.parse(written(plan())))];
  expect(texts.map((text) => read(text)?.items.length)).toEqual([4, 0, 4]);
  const others = ['{"bulkgen":"run"}', "{}", "null", "", '[{"bulkgen":"plan"}]'];
  expect(others.map(read)).toEqual(others.map(() => null));
  expect(() => read('{ "bulkgen": "plan" }')).toThrow("expected a saved plan of version 1, got version null");
  const changed = (change: object) => JSON.stringify({ ...JSON.parse(written(plan())), ...change });
  expect(() => read(changed({ limits: { minute: 60 } }))).toThrow(
    "expected a saved plan; its limits.day is missing or damaged",
  );
  expect(() => read(changed({ flags: [[]] }))).toThrow("its flags.0 is missing or damaged");
  expect(() => read(changed({ flags: [["a", "b", "c"]] }))).toThrow("its flags.0 is");
  expect(() => read(changed({ balance: 1e300 }))).toThrow("its balance is missing or damaged");
});

describe("the file of a saved plan", () => {
  const text = written(plan());
  const lines = text.split("\n");

  test("has each item on a line of its own, and may have other line ends", () => {
    expect(lines).toHaveLength(7);
    const ofWindows = read(lines.join("\r\n"));
    expect(ofWindows?.items.length).toBe(4);
    expect(driftOf(ofWindows as SavedPlan, plan(), 0)).toEqual([]);
  });

  test("is no plan wherever it was cut short", () => {
    const beginning = '{"bulkgen":"plan"'.length;
    const whole = text.trimEnd().length;
    for (let length = beginning; length < whole; length++)
      expect(() => read(text.slice(0, length)), `${length} characters`).toThrow(
        /is missing or damaged|of version/,
      );
    expect(read(text.slice(0, whole))?.items.length).toBe(4);
  });

  const without = (...indexes: number[]) => lines.filter((_, index) => !indexes.includes(index)).join("\n");
  test.each([
    ["without its last line", without(5), "its end"],
    ["without its last item", without(4), "its line 5"],
    ["with an item after the last", [...lines.slice(0, 5), lines[4], "]}"].join("\n"), "its line 6"],
    ["with something after its end", `${text}{}\n`, "its line 7"],
    ["with a line that is no JSON", text.replace('"key":"k1:jug"', '"key":k1:jug'), "its line 3"],
    ["with an item without a key", text.replace('"key":"k1:jug"', '"kex":"k1:jug"'), "its items.1.key"],
    ["with a price that is none", text.replace('"credits":4', '"credits":1e300'), "its items.0.credits"],
    ["laid out anew", JSON.stringify(JSON.parse(text), null, 2), "its line 1"],
  ])("is refused %s", (_, damaged, what) => {
    expect(() => read(damaged)).toThrow(`expected a saved plan; ${what} is missing or damaged`);
  });

  test("is read piece by piece, wherever the pieces end", () => {
    const bytes = Buffer.from(text);
    for (const size of [20, 21, 64, 1_000]) {
      // One buffer for all pieces, as a file is read.
      const piece = Buffer.alloc(size);
      function* pieces() {
        for (let from = 0; from < bytes.length; from += size)
          yield piece.subarray(0, bytes.copy(piece, 0, from, from + size));
      }
      expect(driftOf(readSavedPlan(pieces(), openItems) as SavedPlan, plan(), 0)).toEqual([]);
    }
  });

  test("is read no further than the first piece of another file, or than its first damage", () => {
    const read = (...pieces: string[]) => {
      let taken = 0;
      function* counted() {
        for (const piece of pieces) {
          taken++;
          yield Buffer.from(piece);
        }
      }
      try {
        readSavedPlan(counted(), openItems);
      } catch {}
      return taken;
    };
    expect(read("[\n", '{"id":"a"}\n', "]\n")).toBe(1);
    expect(read(`${lines[0]}\n`, "{]\n", `${lines[1]}\n`, "]}\n")).toBe(2);
  });

  // In full, longer than a string can be.
  test("may have any length", { timeout: 120_000, tags: ["fuzz"] }, () => {
    const count = amount(2, 33);
    const prompt = "x".repeat(16 * 1_024 * 1_024);
    let length = 0;
    function* pieces() {
      let text = "";
      for (const piece of jsonPieces(savePlan(plan({ items: long }), how), "\n")) {
        text += piece;
        if (text.length < 65_536) continue;
        length += text.length;
        yield Buffer.from(text);
        text = "";
      }
      yield Buffer.from(text);
    }
    const long = Array.from({ length: count }, (_, index) => item(`i${index}`, { prompt }));
    expect(driftOf(readSavedPlan(pieces(), openItems) as SavedPlan, plan({ items: long }), 0)).toEqual([]);
    expect(length > constants.MAX_STRING_LENGTH).toBe(count === 33);
  });
});

test("rows are compared wherever they lie in the sheet, and counted where all differ", () => {
  const many = Array.from({ length: 3_000 }, (_, index) => item(`i${index}`, { rowNumber: index + 2 }));
  const before = reread(plan({ items: many }));
  expect(driftOf(before, plan({ items: many.toReversed() }), 0)).toEqual([]);
  const others = many.map((each) => ({ ...each, key: `${each.key}-b`, prompt: "another" })).toReversed();
  const told = driftOf(before, plan({ items: [...others, item("urn")] }), 0).map(({ message }) => message);
  expect(told[0]).toBe("manifest: row 3001 (i2999): prompt changed");
  expect(told[8]).toBe("manifest: 2993 more rows differ");
  expect(driftOf(before, plan({ items: many.slice(1, -1) }), 0).map(({ message }) => message)).toEqual([
    "manifest: row 2 (i0) is gone",
    "manifest: row 3001 (i2999) is gone",
  ]);
});
