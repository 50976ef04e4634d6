import { describe, expect, test } from "vitest";
import { credits, minus, noCredits } from "../../src/core/money.js";
import { type ProgressNow, progressLine, waitingLine } from "../../src/report/progress.js";
import { noCounts, progressOf, quota } from "./facts.js";

const facts: ProgressNow = {
  ...progressOf({
    counts: { ...noCounts, archived: 12, processing: 7, submitting: 1, planned: 6 },
    spent: credits(48),
    cap: credits(104),
    forecastMs: 110_000,
  }),
  now: 1_000_000,
  elapsedMs: 40_300,
};

describe("the progress line", () => {
  test("counts what is done, under way and left", () => {
    expect(progressLine(facts)).toBe(
      "12/26 archived · 0:40, ~0:59 left · 48 of 104 credits · 7 at the service · 1 submitting · 6 to submit · 31/60 requests this minute",
    );
  });

  test("leaves out what is none, and does not count dropped items", () => {
    const done = { ...facts, counts: { ...noCounts, archived: 2, dropped: 3 }, spent: noCredits, cap: null };
    expect(progressLine(done)).toBe("2/2 archived · 0:40 · 31/60 requests this minute");
  });

  test("shows no cap that was used up before the run began", () => {
    expect(progressLine({ ...facts, spent: noCredits, cap: credits(-53) })).not.toContain("credits");
  });

  test("names every other state", () => {
    const counts = { ...noCounts, ready: 1, blocked: 2, failed: 3, held: 4, unknown: 5, overdue: 6 };
    const unlimited = { ...quota, minute: { ...quota.minute, limit: null } };
    expect(progressLine({ ...facts, counts, quota: unlimited })).toBe(
      "0/21 archived · 0:40, ~0:15 left · 48 of 104 credits · 1 to fetch · 2 blocked · 3 failed · 4 held · 5 unknown · 6 overdue",
    );
  });

  test("says since when and why the service is unreachable, and when it is tried again", () => {
    const outage = { since: Date.UTC(2026, 10, 21, 18, 18, 40), reason: "the connection was reset" };
    const out = { ...facts, outage, waiting: "service" as const, until: facts.now + 31_000 };
    const line = progressLine(out);
    expect(line).toContain(
      " · service unreachable since 18:18 UTC (the connection was reset), next try in 31s",
    );
    expect(line).not.toContain("asked us to wait");
  });

  test("counts down to the next request, and names what refuses files or a stop before it", () => {
    const full = { ...facts, waiting: "minute" as const, until: 1_012_300 };
    expect(progressLine(full)).toContain("12/26 archived · minute quota used up, next request in 13s · 0:40");
    const disk = { ...full, diskTrouble: "no space left" };
    expect(progressLine(disk)).toContain(
      "archived · files cannot be saved (nothing new is bought): no space left · 0:40",
    );
    const stopping = { ...disk, stops: [{ kind: "interrupted", message: "interrupted" }] as const };
    expect(progressLine(stopping)).toContain("archived · stopping: interrupted · 0:40");
  });

  test("counts down while the minute is full, whatever the loop waits for", () => {
    const minute = { ...quota.minute, used: 60, nextFreeAt: 1_009_000 };
    const full = { ...facts, quota: { ...quota, minute }, waiting: "tasks" as const, until: 1_002_000 };
    expect(progressLine(full)).toContain("minute quota used up, next request in 9s");
  });

  test("shows how much time is left: no less than the wait for the next request", () => {
    const late = { ...facts, counts: { ...noCounts, archived: 15, processing: 11 }, elapsedMs: 105_000 };
    expect(progressLine(late)).toContain(" archived · 1:45, ~0:44 left · 48");
    expect(progressLine({ ...late, waiting: "day", until: 1_090_000 })).toContain(", ~1:30 left · 48");
  });

  test("shows no time left when nothing is known of it, or when nothing is open", () => {
    const none = { ...facts, counts: { ...noCounts, processing: 26 }, elapsedMs: 3_725_000 };
    expect(progressLine(none)).toContain("archived · 1:02:05 · 48");
    expect(progressLine({ ...facts, forecastMs: null })).toContain("archived · 0:40 · 48");
  });

  test("never shows more credits spent than a cap that it names: --keep-credits allows less when the balance falls", () => {
    const fallen = { ...facts, spent: credits(18), cap: credits(15) };
    expect(progressLine(fallen)).toContain(" · 18 credits, 3 more than the caps allow now · ");
    expect(progressLine({ ...fallen, cap: credits(18) })).toContain(" · 18 of 18 credits · ");
    const below = progressLine({ ...fallen, spent: noCredits, cap: minus(noCredits, credits(3)) });
    expect(below).toContain(" left · 7 at the service");
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
