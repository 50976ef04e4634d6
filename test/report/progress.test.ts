import { describe, expect, test } from "vitest";
import { itemStates } from "../../src/core/item.js";
import { type ProgressNow, progressLine, waitingLine } from "../../src/report/progress.js";
import { quota } from "./facts.js";

const none = Object.fromEntries(itemStates.map((state) => [state, 0])) as ProgressNow["counts"];
const facts: ProgressNow = {
  counts: { ...none, archived: 12, processing: 7, submitting: 1, planned: 6 },
  quota,
  waiting: null,
  until: null,
  stops: [],
  diskTrouble: null,
  outage: null,
  hold: null,
  now: 1_000_000,
};

describe("the progress line", () => {
  test("counts what is done, under way and left", () => {
    expect(progressLine(facts)).toBe(
      "12/26 archived · 8 at the service · 6 to submit · 31/60 requests this minute",
    );
  });

  test("leaves out what is none, and does not count dropped items", () => {
    expect(progressLine({ ...facts, counts: { ...none, archived: 2, dropped: 3 } })).toBe(
      "2/2 archived · 31/60 requests this minute",
    );
  });

  test("names every other state", () => {
    const counts = { ...none, ready: 1, blocked: 2, failed: 3, held: 4, unknown: 5, overdue: 6 };
    const unlimited = { ...quota, minute: { ...quota.minute, limit: null } };
    expect(progressLine({ ...facts, counts, quota: unlimited })).toBe(
      "0/21 archived · 1 to fetch · 2 waiting for another item · 3 failed · 4 held · 5 unknown · 6 overdue · 31 requests this minute",
    );
  });

  test("says since when and why the service is unreachable, and when it is tried again", () => {
    const outage = { since: Date.UTC(2026, 10, 21, 18, 18, 40), reason: "the connection was reset" };
    const line = progressLine({ ...facts, outage, waiting: "service", until: facts.now + 31_000 });
    expect(line).toContain(
      " · service unreachable since 18:18 UTC (the connection was reset), next try in 31s",
    );
    expect(line).not.toContain("asked us to wait");
  });

  test("says what it waits for, what the disk refuses, and why it stops", () => {
    const line = progressLine({
      ...facts,
      waiting: "minute" as const,
      until: 1_012_300,
      diskTrouble: "no space left",
      stops: [{ kind: "interrupted", message: "interrupted" }],
    });
    expect(line).toContain(
      " · minute quota used up, next request in 13s · waiting for the disk (nothing new is bought): no space left · stopping: interrupted",
    );
  });

  test("P3: says until when nothing is submitted, and for what", () => {
    expect(progressLine({ ...facts, hold: { unsettled: 5, until: 1_230_000 } })).toContain(
      " · submitting is paused until 5 lost answers are settled, next check in 3m 50s",
    );
    expect(progressLine({ ...facts, hold: { unsettled: 1, until: 1_030_000 } })).toContain(
      " · submitting is paused until 1 lost answer is settled, next check in 30s",
    );
  });

  test("does not call it waiting that tasks take their time", () => {
    expect(progressLine({ ...facts, waiting: "tasks", until: 1_012_300 })).toBe(progressLine(facts));
  });
});

test.each([
  ["minute", 1_000, "minute quota used up, next request in 1s"],
  ["minute", -50, "minute quota used up, next request in 1s"],
  ["day", 11_045_000, "daily quota used up, next request in 3h 4m"],
  ["service", 40_000, "the service asked us to wait, next request in 40s"],
] as const)("waiting for the %s, %i ms", (what, ms, line) => {
  expect(waitingLine(what, 5_000 + ms, 5_000)).toBe(line);
});
