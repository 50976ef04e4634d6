import { expect, test } from "vitest";
import { groupedReasons } from "../../src/text/reasons.js";

test("the longest reason why an item is held is shown to its end, which says what is certain", () => {
  const body = `{"task_id":"01a21814-da6a-7b1a-bc72-e07b5b6af793","external_t…`;
  const answer = `answer 200 without a readable task_id: text beginning "${body}"`;
  const doubt =
    "credits of a lost task may have been returned meanwhile, so the key's counters prove nothing";
  const reason = `1234.5 credits may have been charged (${answer}); ${doubt}`;
  expect(groupedReasons([{ rowId: "f30", kind: "", reason }], 5)).toEqual([`1 × ${reason} (f30)`]);
});
