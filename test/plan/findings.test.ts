import { expect, test } from "vitest";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { lateMsMax } from "../../src/core/quota/quota.js";
import { settlingWarning } from "../../src/plan/findings.js";

test("P5: settling before the last moment at which a lost request may arrive is warned of", () => {
  expect(settlingWarning([1_000, 2_000])).toEqual([
    {
      kind: "early_settling",
      message: expect.stringMatching(
        /--settle-seconds .* 2 s .* 400 s .*Expected at least 400 as the last value, got 2\./,
      ),
      seconds: 2,
      atLeast: 400,
    },
  ]);
  expect(settlingWarning([1_000, lateMsMax - 1_000])).toHaveLength(1);
  expect(settlingWarning([1_000, lateMsMax])).toEqual([]);
  expect(settlingWarning(defaultReconcile.settleMs)).toEqual([]);
});
