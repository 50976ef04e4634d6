import { expect, test } from "vitest";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { lateMsMax } from "../../src/core/quota/quota.js";
import { deadlineWarning, settlingWarning } from "../../src/plan/findings.js";

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

test("a run that takes longer than --until or --max-duration lets it is warned of", () => {
  const requests = { finishAt: Date.UTC(2026, 10, 22, 7) } as Parameters<typeof deadlineWarning>[0];
  expect(deadlineWarning(requests, Date.UTC(2026, 10, 22, 6))).toEqual([
    {
      kind: "deadline",
      message: expect.stringMatching(
        /^Submitting ends at 2026-11-22 .*, and the run takes until about 2026-11-22 /,
      ),
      until: "2026-11-22T06:00:00.000Z",
      finishAt: requests.finishAt,
    },
  ]);
  expect(deadlineWarning(requests, requests.finishAt)).toEqual([]);
  expect(deadlineWarning(requests, null)).toEqual([]);
  expect(deadlineWarning({ ...requests, finishAt: null }, 0)).toEqual([]);
});
