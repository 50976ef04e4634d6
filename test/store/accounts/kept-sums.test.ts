import fc from "fast-check";
import { expect, test } from "vitest";
import { accountsMigrations, costOf } from "../../../src/store/accounts/accounts-schema.js";
import { openDatabase } from "../../../src/store/open.js";

test("the kept sums are those of the entries, whatever happened to them", async () => {
  const amount = fc.option(fc.nat({ max: 9 }));
  const step = fc.oneof(
    fc.record({ price: fc.nat({ max: 9 }), at: fc.nat({ max: 9 }), seq: fc.nat({ max: 9 }) }),
    fc.record({
      entry: fc.nat({ max: 5 }),
      outcome: fc.constantFrom(null, "free", "accepted", "unknown"),
      verdict: fc.constantFrom(null, "not_charged", "charged", "undecided"),
      task: fc.constantFrom(null, "open", "completed", "failed"),
      charged: amount,
      kept: fc.nat({ max: 9 }),
    }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const db = openDatabase(":memory:", accountsMigrations);
      db.exec("INSERT INTO accounts (id, origin) VALUES (1, 'o')");
      db.exec("INSERT INTO keys (origin, fingerprint, account_id) VALUES ('o', 'f', 1)");
      for (const each of steps) {
        if ("price" in each)
          db.prepare(
            `INSERT INTO spend_log (origin, fingerprint, workspace, item_key, price, intended_seq, intended_at, sent_at)
             VALUES ('o', 'f', 'w', 'k', ?, ?, 0, ?)`,
          ).run(each.price, each.seq * 512, each.at * 450_000);
        else
          db.prepare(
            "UPDATE spend_log SET outcome = ?, verdict = ?, task = ?, charged = ?, kept = ? WHERE id = ?",
          ).run(each.outcome, each.verdict, each.task, each.charged, each.kept, each.entry);
      }
      for (const [kind, block] of [
        ["time", "sent_at / 900000"],
        ["seq", "intended_seq / 1024"],
      ]) {
        const counted = `SELECT ${block} AS block, sum(${costOf("spend_log")}) AS credits FROM spend_log GROUP BY 1`;
        const kept = `SELECT block, credits FROM spent WHERE kind = '${kind}' ORDER BY block`;
        expect(db.prepare(kept).all()).toEqual(db.prepare(counted).all());
      }
      db.close();
    }),
  );
});
