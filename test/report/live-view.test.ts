import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { credits, noCredits } from "../../src/core/money.js";
import { plainReason } from "../../src/core/reason.js";
import { type LiveFacts, type LiveStyle, liveView } from "../../src/report/live-view.js";
import { textWidth } from "../../src/text/terminal.js";
import { anyCharacter } from "../any-character.js";
import { amount } from "../fuzz/amount.js";
import { noCounts, progressOf, quota } from "./facts.js";

const facts: LiveFacts = {
  ...progressOf({
    counts: { ...noCounts, archived: 12, processing: 7, submitting: 1, planned: 6, failed: 4, held: 1 },
    spent: credits(48),
    cap: credits(104),
    forecastMs: 110_000,
    reason: plainReason("minute", 1_012_300),
  }),
  now: 1_000_000,
  elapsedMs: 40_300,
  run: 3,
  sandbox: true,
  job: "autumn",
  folder: "/srv/outputs/autumn",
  cwd: "/srv",
  newestFile: "products/teapot-1.png",
  awaiting: { items: 2, rowIds: ["intro-1", "intro-2"] },
  trouble: [
    {
      state: "failed",
      kind: "moderation",
      note: "The prompt was rejected by content moderation.",
      items: 3,
      rowIds: ["cover-1", "cover-2", "cover-4"],
    },
    { state: "held", kind: null, note: "the answer was cut off", items: 1, rowIds: ["clip-9"] },
    { state: "failed", kind: "provider", note: "no capacity", items: 1, rowIds: ["cover-3"] },
  ],
};
const plain = (width: number, height = 23): LiveStyle => ({ width, height, colour: false });
const shown = (width: number, change: Partial<LiveFacts> = {}, style: Partial<LiveStyle> = {}) =>
  liveView({ ...facts, ...change }, { ...plain(width), ...style }).join("\n");

describe("the live view of a run", () => {
  test("in 59 columns", () => {
    expect(shown(59)).toMatchInlineSnapshot(`
      "
      autumn, run 3 · 0:40, ~0:49 left
      archived    ━━━━━━━━━━──────────────  12 of 31 items
      credits     ━━━━━━━━━━━━────────────  48 of 104 credits
      minute      ━━━━━━━━━━━━━───────────  31 of 60 requests
      day         ━───────────────────────  340 of 10000 requests
      items       4 failed, 1 held, 7 at the service
      newest      outputs/autumn/products/teapot-1.png
      failed      3 × moderation: The promp… (cover-1 and 2 more)
      failed      1 × provider: no capacity (cover-3)
      held        1 × waiting for your decision: the an… (clip-9)
      to approve  2 waiting for your approval (intro-1, intro-2)
      now         minute quota used up, next request in 13s"
    `);
  });

  test("in 79 columns", () => {
    expect(shown(79)).toMatchInlineSnapshot(`
      "
      autumn, run 3 · 0:40, ~0:49 left
      archived    ━━━━━━━━━━━━━━━━────────────────────────  12 of 31 items
      credits     ━━━━━━━━━━━━━━━━━━━─────────────────────  48 of 104 credits
      minute      ━━━━━━━━━━━━━━━━━━━━━───────────────────  31 of 60 requests
      day         ━━──────────────────────────────────────  340 of 10000 requests
      items       4 failed, 1 held, 7 at the service, 1 submitting, 6 to submit
      newest      outputs/autumn/products/teapot-1.png
      failed      3 × moderation: The prompt was rejected by co… (cover-1 and 2 more)
      failed      1 × provider: no capacity (cover-3)
      held        1 × waiting for your decision: the answer was cut off (clip-9)
      to approve  2 waiting for your approval (intro-1, intro-2)
      now         minute quota used up, next request in 13s"
    `);
  });

  test("in 199 columns", () => {
    expect(shown(199)).toMatchInlineSnapshot(`
      "
      autumn, run 3 · 0:40, ~0:49 left
      archived    ━━━━━━━━━━━━━━━━────────────────────────  12 of 31 items       minute      ━━━━━━━━━━━━━━━━━━━━━───────────────────  31 of 60 requests
      credits     ━━━━━━━━━━━━━━━━━━━─────────────────────  48 of 104 credits    day         ━━──────────────────────────────────────  340 of 10000 requests
      items       4 failed, 1 held, 7 at the service, 1 submitting, 6 to submit
      newest      outputs/autumn/products/teapot-1.png
      failed      3 × moderation: The prompt was rejected by content moderation. (cover-1, cover-2, cover-4)
      failed      1 × provider: no capacity (cover-3)
      held        1 × waiting for your decision: the answer was cut off (clip-9)
      to approve  2 waiting for your approval (intro-1, intro-2)
      now         minute quota used up, next request in 13s"
    `);
  });

  test("in 199 columns, with colours and links", () => {
    expect(shown(199, {}, { colour: true, links: true }).replaceAll("\u001b", "␛")).toMatchInlineSnapshot(`
      "
      ␛[1mautumn, run 3␛[22m␛[2m · 0:40, ~0:49 left␛[22m
      archived    ␛[32m━━━━━━━━━━━━━━━━␛[39m␛[2m────────────────────────␛[22m  12 of 31 items       minute      ␛[1m━━━━━━━━━━━━━━━━━━━━━␛[22m␛[2m───────────────────␛[22m  31 of 60 requests
      credits     ␛[1m━━━━━━━━━━━━━━━━━━━␛[22m␛[2m─────────────────────␛[22m  48 of 104 credits    day         ␛[1m━━␛[22m␛[2m──────────────────────────────────────␛[22m  340 of 10000 requests
      items       4 failed, 1 held, 7 at the service, 1 submitting, 6 to submit
      newest      ␛]8;;file:///srv/outputs/autumn/products/teapot-1.png␛\\outputs/autumn/products/teapot-1.png␛]8;;␛\\
      failed      ␛[31m3 × moderation: The prompt was rejected by content moderation. (cover-1, cover-2, cover-4)␛[39m
      failed      ␛[31m1 × provider: no capacity (cover-3)␛[39m
      held        ␛[33m1 × waiting for your decision: the answer was cut off (clip-9)␛[39m
      to approve  ␛[33m2 waiting for your approval (intro-1, intro-2)␛[39m
      now         minute quota used up, next request in 13s"
    `);
  });

  test("without a cap, a limit, a forecast or a file it shows what there is", () => {
    const unlimited = { limit: null, used: 3, nextFreeAt: 0, nextReleaseAt: null };
    expect(
      shown(79, {
        counts: { ...noCounts, processing: 2 },
        cap: null,
        spent: noCredits,
        quota: { ...quota, minute: unlimited, day: unlimited },
        forecastMs: null,
        newestFile: null,
        trouble: [],
        awaiting: { items: 0, rowIds: [] },
        reason: null,
      }),
    ).toMatchInlineSnapshot(`
      "
      autumn, run 3 · 0:40
      archived    ────────────────────────────────────────  0 of 2 items
      items       2 at the service"
    `);
  });

  test("credits beyond what the caps allow now are named as such, with a full bar", () => {
    expect(shown(79, { spent: credits(18), cap: credits(15) })).toMatch(
      /^credits +━+ {2}18 credits, 3 more than the caps allow now$/m,
    );
  });

  test("on a low terminal the least important lines are left out", () => {
    expect(shown(59, {}, { height: 5 })).toMatchInlineSnapshot(`
      "autumn, run 3 · 0:40, ~0:49 left
      archived    ━━━━━━━━━━──────────────  12 of 31 items
      failed      3 × moderation: The promp… (cover-1 and 2 more)
      failed      1 × provider: no capacity (cover-3)
      held        1 × waiting for your decision: the an… (clip-9)"
    `);
    for (let height = 1; height < 20; height++)
      expect(liveView(facts, plain(59, height)).length).toBeLessThanOrEqual(height);
  });

  test("the same facts have the same lines with colours as without", () => {
    const colours = liveView(facts, { ...plain(79), colour: true });
    expect(colours.map((line) => stripVTControlCharacters(line))).toEqual(liveView(facts, plain(79)));
  });

  test("of many reasons the largest are told and the rest is counted", () => {
    const trouble = Array.from({ length: 9 }, (_, number) => ({
      state: "failed" as const,
      kind: "provider" as const,
      note: `reason ${number}`,
      items: 10 - number,
      rowIds: ["a"],
    }));
    const lines = liveView({ ...facts, trouble }, plain(79));
    expect(lines.filter((line) => line.startsWith("failed"))).toHaveLength(3);
    expect(lines).toContain("            27 more for other reasons: `bulkgen status 3 --sandbox` lists them");
  });
});

/** What would break a layout or a terminal, besides text of every script. */
const hostile = fc
  .array(
    fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom(
        "\u001b[31m",
        "\u001b]0;title\u0007",
        "\u009b2J",
        "\u202e",
        "\u2066",
        "\r",
        "\n",
        "\u2028",
        "\ud800",
        "\t",
        "مرحبا بالعالم",
        "שלום",
        "日本語の絵",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "e".padEnd(200, "\u0301"),
        "👩".concat("\u200d👩".repeat(50)),
        "long ".repeat(2_000),
        "x".repeat(10_000),
      ),
    ),
    { maxLength: 6 },
  )
  .map((pieces) => pieces.join(""));

test("P24: whatever names and messages are, no line is wider than the terminal or has control characters", {
  tags: ["fuzz"],
}, () => {
  fc.assert(
    fc.property(
      hostile,
      hostile,
      fc.integer({ min: 20, max: 220 }),
      fc.boolean(),
      (text, other, width, colour) => {
        const trouble = facts.trouble.map((group) => ({ ...group, note: text, rowIds: [other, text] }));
        const stops = [{ kind: "interrupted", message: text }] as const;
        const awaiting = { items: 9, rowIds: [text, other] };
        const change = {
          awaiting,
          job: other,
          newestFile: `${text}.png`,
          trouble,
          stops,
          diskTrouble: other,
        };
        for (const line of liveView({ ...facts, ...change }, { ...plain(width), colour })) {
          expect(textWidth(line)).toBeLessThanOrEqual(width);
          expect(stripVTControlCharacters(line)).not.toMatch(
            /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u,
          );
          // One column is not thousands of characters.
          expect(line.length).toBeLessThan(60 * width);
        }
      },
    ),
    { numRuns: amount(8, 50) },
  );
});

test("P24: a link to a file with a hostile name has none of its characters", () => {
  const newestFile = "a\u001b]8;;https://evil.example\u001b\\b\u202e.png";
  const lines = liveView({ ...facts, newestFile }, { ...plain(79), links: true });
  const line = lines.find((text) => text.startsWith("newest")) ?? "";
  expect(line).toContain(
    "\u001b]8;;file:///srv/outputs/autumn/a%1B%5D8;;https:/evil.example%1B%5Cb%E2%80%AE.png\u001b\\",
  );
  expect(line.split("\u001b")).toHaveLength(5);
});
