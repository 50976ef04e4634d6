import { describe, expect, test } from "vitest";
import { credits, minus, noCredits } from "../../src/core/money.js";
import { plainReason } from "../../src/core/reason.js";
import { type ProgressNow, progressLine } from "../../src/report/progress.js";
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

  test("says why nothing is bought or sent, until when, and shows no end that is not known", () => {
    const text = "service unreachable since 18:18 UTC (the connection was reset)";
    const out = progressLine({ ...facts, reason: { kind: "outage", text, until: facts.now + 31_000 } });
    expect(out).toContain(`12/26 archived · ${text}, next try in 31s · 0:40 · 48`);
    const full = progressLine({ ...facts, reason: plainReason("minute", 1_012_300) });
    expect(full).toContain("12/26 archived · minute quota used up, next request in 13s · 0:40, ~0:59 left");
  });

  test("shows how much time is left: no less than the wait for the next request", () => {
    const late = { ...facts, counts: { ...noCounts, archived: 15, processing: 11 }, elapsedMs: 105_000 };
    expect(progressLine(late)).toContain(" archived · 1:45, ~0:44 left · 48");
    expect(progressLine({ ...late, reason: plainReason("day", 1_090_000) })).toContain(", ~1:30 left · 48");
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
});
