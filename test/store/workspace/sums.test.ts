import fc from "fast-check";
import { expect, test } from "vitest";
import { itemStates, transitionList } from "../../../src/core/item.js";
import type { Sqlite } from "../../../src/sqlite.js";
import { openDatabase } from "../../../src/store/open.js";
import { workspaceMigrations } from "../../../src/store/workspace/workspace-schema.js";
import { wrongSums } from "../wrong-sums.js";

const item = fc.nat({ max: 2 });
const run = fc.option(fc.integer({ min: 1, max: 2 }));
const amount = fc.option(fc.nat({ max: 9 }));
const steps = fc.array(
  fc.oneof(
    fc.record({ add: item, run, price: fc.nat({ max: 9 }), priority: fc.nat({ max: 1 }) }),
    fc.record({ item, run }),
    fc.record({ item, price: fc.nat({ max: 9 }) }),
    { arbitrary: fc.record({ item, event: fc.nat({ max: 999 }) }), weight: 8 },
    fc.record({ attemptOf: item, run: fc.integer({ min: 1, max: 2 }), price: fc.nat({ max: 9 }) }),
    fc.record({
      changeOf: item,
      outcome: fc.constantFrom(null, "accepted", "refused", "unanswered"),
      verdict: fc.constantFrom(null, "not_charged", "charged", "undecided"),
      charged: amount,
      closed: fc.nat({ max: 1 }),
    }),
  ),
  { maxLength: 60, size: "max" },
);
type Step = { [Name in string]?: unknown };

/** Carries out a step, unless there is no such item. */
function take(db: Sqlite, step: Step): void {
  const { add, item, run, price, priority, event, attemptOf, changeOf } = step;
  if (add !== undefined)
    db.prepare(
      `INSERT INTO items (job_id, run_id, key, edition, occurrence, variant, position, priority, row_number, row_id, name,
         model, category, params, inputs, price, price_group, state)
       VALUES (1, ?, ?, '', 1, 1, 1, ?, 1, 'r', 'n', 'm' || ? % 2, 'image', '{}', '{}', ?, 'g' || ? % 2, 'planned')
       ON CONFLICT (job_id, key) DO UPDATE SET run_id = excluded.run_id, price = excluded.price, priority = excluded.priority`,
    ).run(run, `k${add}`, priority, add, price, add);
  else if (event !== undefined) advance(db, `k${item}`, Number(event));
  else if (price !== undefined && item !== undefined)
    db.prepare("UPDATE items SET price = ? WHERE key = ?").run(price, `k${item}`);
  else if (item !== undefined) db.prepare("UPDATE items SET run_id = ? WHERE key = ?").run(run, `k${item}`);
  else if (attemptOf !== undefined)
    db.prepare(
      `INSERT INTO attempts (item_id, run_id, number, price, intended_at, sent_at, body_sha256)
       SELECT id, ?, (SELECT count(*) + 1 FROM attempts WHERE item_id = items.id), ?, 0, 0, '' FROM items WHERE key = ?`,
    ).run(run, price, `k${attemptOf}`);
  else
    db.prepare(
      `UPDATE attempts SET outcome = ?, verdict = ?, charged = ?, closed = ?
       WHERE item_id = (SELECT id FROM items WHERE key = ?)`,
    ).run(step["outcome"], step["verdict"], step["charged"], step["closed"], `k${changeOf}`);
}

/** One of the steps that the item's life allows next. */
function advance(db: Sqlite, key: string, which: number): void {
  const state = db.prepare("SELECT state FROM items WHERE key = ?").pluck().get(key);
  const goesOn = which % 10 > 0;
  const ways = transitionList.filter(
    ({ from, event, to }) => from === state && event !== "supplied" && !(goesOn && to === "dropped"),
  );
  const way = ways[which % ways.length];
  const isBack = way?.event === "returned" && db.prepare("SELECT 1 FROM attempts").get() !== undefined;
  if (way && !isBack) db.prepare("UPDATE items SET state = ? WHERE key = ?").run(way.to, key);
}

test("whatever happens to items and attempts, the kept sums are what counting the tables gives", () => {
  const db = openDatabase(":memory:", workspaceMigrations);
  db.exec(`INSERT INTO jobs VALUES (1, 'demo', 0);
    INSERT INTO runs (id, job_id, state, manifest, origin, account_id, edition, out_folder, options, started_at)
    VALUES (1, 1, 'running', '', '', '', '', '', '{}', 0), (2, 1, 'running', '', '', '', '', '', '{}', 0)`);
  const seen = new Set<unknown>();
  fc.assert(
    fc.property(steps, (life) => {
      db.exec("BEGIN");
      try {
        for (const step of life) {
          take(db, step);
          expect(
            wrongSums.flatMap((query) => db.prepare(query).all()),
            JSON.stringify(step),
          ).toEqual([]);
        }
        for (const state of db.prepare("SELECT state FROM run_states WHERE items > 0").pluck().all())
          seen.add(state);
      } finally {
        db.exec("ROLLBACK");
      }
    }),
    { numRuns: 100, seed: 7 },
  );
  expect([...seen].length, `states that were reached: ${[...seen].join(", ")}`).toBeGreaterThan(
    itemStates.length - 3,
  );
});
