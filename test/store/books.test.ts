import { expect, test } from "vitest";
import { credits, noCredits } from "../../src/core/money.js";
import { defaultReconcile } from "../../src/core/readings.js";
import { openAccounts } from "../../src/store/accounts.js";
import { ManualClock } from "../manual-clock.js";

const hourMs = 3_600_000;
const years = 3_650 * 24 * hourMs;

test("P5, P20: a task that fails after the baseline is evidence, though the clock was ten years ahead at that one", async () => {
  const clock = new ManualClock();
  const right = clock.now();
  const accounts = openAccounts(":memory:", clock);
  const owner = { origin: "https://service.example", fingerprint: "f1", workspace: "here" };
  await accounts.accountOf(owner.origin, owner.fingerprint);
  const books = accounts.books(owner);
  const failing = await books.intend({ itemKey: "k", price: credits(4), at: right });
  await books.answered(failing, { outcome: "accepted", charged: credits(4) });
  clock.set(years);
  await books.read({ used: credits(4), requests: 2, over: 1, servedAt: right });
  clock.set(-years);
  clock.advance(hourMs);
  await books.looked(failing, { task: "failed", charged: noCredits, endedAt: right + hourMs });
  expect((await books.evidence(defaultReconcile))?.entries.map(({ id }) => id)).toEqual([failing]);
});
