import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { beforeEach, describe, expect, test } from "vitest";
import type { Accounts } from "../../src/core/accounts.js";
import type { Books } from "../../src/core/books.js";
import { type Day, dayOf } from "../../src/core/day.js";
import { credits, noCredits, showCredits } from "../../src/core/money.js";
import { openSqlite } from "../../src/sqlite.js";
import { openAccounts } from "../../src/store/accounts.js";
import { ManualClock } from "../manual-clock.js";
import { golden } from "./golden-content.js";

const origin = "https://service.example";
const dayMs = 86_400_000;
const hourMs = 3_600_000;
const noon = new Date(2026, 10, 22, 12).getTime();
const years = 3_650 * dayMs;
let accounts: Accounts;
let id: number;
let books: Books;

beforeEach(async () => {
  accounts = openAccounts(":memory:", new ManualClock(noon));
  id = (await accounts.accountOf(origin, "f1")).id;
  books = accounts.books({ origin, fingerprint: "f1", workspace: "one" });
});

const dayAt = (at: number): Day => dayOf({ earliest: at, latest: at });
const spend = (credit: number, at = noon) => books.intend({ itemKey: "k", price: credits(credit), at });
/** On the day of that time. */
const spent = async (at = noon) => showCredits(await accounts.spentOn(id, dayAt(at)));

test("what a day has cost is counted over all keys of the account, and what was not charged is free", async () => {
  await accounts.name(id, "user-1");
  const second = await accounts.accountOf(origin, "f2");
  await accounts.name(second.id, "user-1");
  const others = accounts.books({ origin, fingerprint: "f2", workspace: "two" });
  const accepted = await spend(4);
  await others.intend({ itemKey: "k", price: credits(8), at: noon });
  expect(await spent()).toBe("12");
  await books.answered(accepted, { outcome: "accepted", charged: credits(5) });
  expect(await spent()).toBe("13");
  // What its end does not tell stays as it was.
  await books.looked(accepted, { task: "completed", charged: null, endedAt: null });
  expect(await spent()).toBe("13");
  await books.looked(accepted, { task: "failed", charged: noCredits, endedAt: null });
  await books.answered(await spend(2), { outcome: "free" });
  expect(await spent()).toBe("8");
  const cap = { most: credits(9), day: dayAt(noon) };
  expect(await books.intendWithin(cap, { itemKey: "k", price: credits(2), at: noon })).toBeNull();
  expect(await books.intendWithin(cap, { itemKey: "k", price: credits(1), at: noon })).not.toBeNull();
});

test("a day ends at midnight, and what is known of only as one of two days counts for both", async () => {
  await spend(1);
  await spend(2, noon + dayMs);
  expect(await spent(noon + dayMs)).toBe("2");
  expect(await accounts.spentOn(id, dayOf({ earliest: noon, latest: noon + dayMs }))).toBe(credits(3));
});

describe("P7, P20: what was sent while the clock was ten years ahead", () => {
  test("counts on the day on which it is found, and no more on the next", async () => {
    await spend(4, noon + years);
    await spend(1, noon);
    expect(await spent()).toBe("5");
    expect(await spent(noon + hourMs)).toBe("5");
    expect(await spent(noon + dayMs)).toBe("0");
    // The day that the clock showed may have been the right one.
    expect(await spent(noon + years)).toBe("4");
  });

  test("does not stand in the way of what is sent afterwards: each counts on its day", async () => {
    await spend(4, noon + years);
    for (const days of [0, 1, 2]) await spend(1, noon + days * dayMs);
    expect(await spent(noon + 2 * dayMs)).toBe("5");
    expect(await spent(noon + 3 * dayMs)).toBe("0");
  });

  test("is found anew where it was found while the clock was ahead too", async () => {
    await spend(4, noon + years);
    await spent(noon + years / 2);
    expect(await spent()).toBe("4");
    expect(await spent(noon + dayMs)).toBe("0");
  });

  test("is found by its own account: another one's time may be wrong", async () => {
    const other = await accounts.accountOf("https://other.example", "f1");
    await spend(4, noon + years);
    await accounts.spentOn(other.id, dayAt(noon - years));
    const theirs = { origin: "https://other.example", fingerprint: "f1", workspace: "one" };
    await accounts.books(theirs).intend({ itemKey: "k", price: credits(9), at: noon + years });
    await accounts.spentOn(other.id, dayAt(noon - years));
    expect(await spent()).toBe("4");
  });
});

test("P7, P20: what was spent today still counts after the clock was put back by ten years and right again", async () => {
  await spend(4);
  expect(await spent(noon - years)).toBe("4");
  expect(await spent()).toBe("4");
  expect(await spent(noon + dayMs)).toBe("0");
});

test("P19: what an older program spent counts on the day that the clock showed then", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "bulkgen-spending-")), "accounts.db");
  writeFileSync(path, gunzipSync(readFileSync(new URL("./golden/accounts-8.db.gz", import.meta.url))));
  const db = openSqlite(path);
  const insert = db.prepare(
    "INSERT INTO entries (id, origin, fingerprint, workspace, item_key, price, intended_seq, intended_at) VALUES (?, ?, ?, 'w', 'k', ?, 1, ?)",
  );
  // Numbers never fall, so after the clock was ahead they stayed there.
  for (const [number, at] of [noon - dayMs, noon + years, noon, noon + dayMs].entries())
    insert.run((noon + years) * 1_000 + number, golden.origin, golden.fingerprint, 10 ** (number + 6), at);
  db.close();
  const older = openAccounts(path, new ManualClock(noon));
  const account = await older.accountOf(golden.origin, golden.fingerprint);
  expect(showCredits(await older.spentOn(account.id, dayAt(noon + dayMs)))).toBe("1010");
  older.close();
});
