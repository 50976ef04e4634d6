import { describe, expect, test } from "vitest";
import { afterAnswer, fullLanes, type LaneAnswer, type LaneLimit } from "../../../src/core/pace/lanes.js";

/** Answers one after the other, each sent when the one before had come. */
function after(
  limit: LaneLimit,
  answers: readonly [ms: number, sign: "good" | "trouble"][],
  from = 0,
): LaneLimit {
  let at = from;
  return answers.reduce((sum, [ms, sign]) => {
    const answer: LaneAnswer = { sentAt: at, at: at + ms, sign };
    at += ms;
    return afterAnswer(sum, answer);
  }, limit);
}
const many = (count: number, ms: number, sign: "good" | "trouble" = "good"): [number, typeof sign][] =>
  Array.from({ length: count }, () => [ms, sign]);

describe("lanes of 16", () => {
  test.each([
    ["before any answer", [], 16],
    ["while all is well", many(20, 700), 16],
    ["after one trouble", [...many(3, 700), ...many(1, 700, "trouble")], 8],
    ["after one trouble after the other", many(3, 700, "trouble"), 2],
    ["however much trouble", many(20, 700, "trouble"), 1],
    ["two more for each second of good answers", [...many(1, 700, "trouble"), ...many(3, 1_000)], 14],
    ["no more than that for quick answers", [...many(1, 700, "trouble"), ...many(21, 100)], 12],
    ["two more for a good answer after a pause", [...many(2, 700, "trouble"), ...many(1, 1_000)], 6],
    ["all of them again after eight seconds", [...many(20, 700, "trouble"), ...many(8, 1_000)], 16],
    ["after an answer that took far longer than usual", [...many(5, 700), ...many(1, 30_000)], 8],
    ["while answers take a little longer", [...many(5, 700), ...many(5, 1_900)], 16],
    ["where a quick answer took three times as long", [...many(5, 100), ...many(1, 1_000)], 16],
    ["after a first answer that is slow, with nothing to compare it with", many(2, 4_000), 16],
    ["after an answer that took just three times as long", [...many(5, 1_000), ...many(1, 3_000)], 16],
    ["where one answer among slow ones was quick", [...many(5, 3_000), [100, "good"], [6_000, "good"]], 16],
    ["where slow answers have become usual", [...many(5, 700), ...many(16, 30_000)], 16],
  ] satisfies [string, [number, "good" | "trouble"][], number][])("%s", (_, answers, lanes) => {
    expect(Math.floor(after(fullLanes(16), answers).lanes)).toBe(lanes);
  });

  test("requests that were under way together are one trouble", () => {
    const together = { sentAt: 0, at: 700, sign: "trouble" as const };
    let limit = afterAnswer(fullLanes(16), together);
    for (let answers = 0; answers < 15; answers++) limit = afterAnswer(limit, { ...together, at: 900 });
    expect(limit.lanes).toBe(8);
    expect(afterAnswer(limit, { sentAt: 800, at: 1_500, sign: "trouble" as const }).lanes).toBe(4);
  });

  test("a good answer that is heard of after a later trouble takes nothing away", () => {
    const trouble = { sentAt: 0, at: 700.4, sign: "trouble" as const };
    const limit = afterAnswer(fullLanes(2), trouble);
    const after = afterAnswer(limit, { sentAt: 0, at: 700.3, sign: "good" });
    expect(after.lanes).toBe(1);
    // Nor does it count the same time again.
    expect(afterAnswer(after, { sentAt: 700, at: 1_700.4, sign: "good" }).lanes).toBeCloseTo(1.25, 9);
  });
});

test("any number of lanes is back eight seconds after the trouble", () => {
  for (const ceiling of [1, 2, 5, 64]) {
    const least = after(fullLanes(ceiling), many(20, 700, "trouble"));
    expect(least.lanes).toBe(1);
    expect(Math.floor(after(least, many(16, 500), 20 * 700).lanes)).toBe(ceiling);
  }
});
