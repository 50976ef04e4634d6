import { describe, expect, it } from "vitest";
import { GroupCommit } from "../../src/service/state/group-commit.js";
import { openSqlite } from "../../src/sqlite.js";

function bench() {
  const db = openSqlite(":memory:");
  db.exec("create table written (n integer primary key) strict");
  let transactions = 0;
  const commits = new GroupCommit((work) => {
    transactions++;
    db.transaction(work).immediate();
  });
  const insert = (n: number) =>
    commits.run(() => db.prepare("insert into written values (?)").run(n).changes);
  const rows = () => db.prepare("select n from written order by n").pluck().all();
  return { db, commits, insert, rows, transactions: () => transactions };
}

describe("work that arrives together", () => {
  it("is committed together, in order, before anybody has an answer", async () => {
    const { db, insert, rows, transactions } = bench();
    const inTransaction: boolean[] = [];
    const answers = [1, 2, 3].map((n) => insert(n).then(() => inTransaction.push(db.inTransaction)));
    expect(rows()).toEqual([]);
    await Promise.all(answers);
    expect([rows(), transactions(), inTransaction]).toEqual([[1, 2, 3], 1, [false, false, false]]);
  });

  it("is done one by one when one of it fails, and only that one fails", async () => {
    const { insert, rows } = bench();
    const settled = await Promise.allSettled([insert(1), insert(1), insert(2)]);
    expect(settled.map((one) => one.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(rows()).toEqual([1, 2]);
  });

  it("is still done when the sandbox closes", async () => {
    const { commits, insert, rows } = bench();
    const answer = insert(1);
    commits.close();
    await answer;
    expect(rows()).toEqual([1]);
  });
});
