import { describe, expect, test } from "vitest";
import { plainReason, type Reason, type ReasonKind, reasonKinds } from "../../src/core/reason.js";
import { reasonText } from "../../src/report/progress.js";

const now = Date.UTC(2026, 10, 21, 12);

describe("a reason as one sentence", () => {
  test.each([
    ["minute", 1_000, "minute quota used up, next request in 1s"],
    ["day", 11_045_000, "daily quota used up, next request at 2026-11-21 15:04 UTC"],
    ["reserve", 59_000, "the rest of today's requests is kept for tasks at the service, next request in 59s"],
    ["service", 218_000, "the service asked us to wait, next request in 3m 38s"],
    ["pacing", 8_000, "requests are spaced out, as this service demands, next request in 8s"],
    ["minute", -50, "minute quota used up"],
  ] as const)("of the quota: %s for %i ms", (kind, ms, sentence) => {
    expect(reasonText(plainReason(kind, now + ms), now)).toBe(sentence);
  });

  test("says what is done at its end, if that is known", () => {
    const credits: Reason = {
      kind: "credits",
      text: "out of credits, waiting for more",
      until: now + 300_000,
    };
    expect(reasonText(credits, now)).toBe("out of credits, waiting for more, next check in 5m");
    expect(reasonText({ ...credits, until: null }, now)).toBe("out of credits, waiting for more");
    expect(reasonText({ kind: "outage", text: "service unreachable", until: now + 2_000 }, now)).toBe(
      "service unreachable, next try in 2s",
    );
  });

  test("shows no control characters, whatever the service or the disk says", () => {
    for (const kind of reasonKinds satisfies readonly ReasonKind[])
      expect(reasonText({ kind, text: "bad\u001b[31m", until: null }, now)).not.toContain("\u001b");
  });
});
