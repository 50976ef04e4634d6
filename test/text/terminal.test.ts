import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { problemLine } from "../../src/report/problem-text.js";
import { progressLine } from "../../src/report/progress.js";
import { statusText } from "../../src/report/status.js";
import { summarise } from "../../src/report/summary.js";
import { table } from "../../src/text/table.js";
import { cutStartToWidth, cutToWidth, shortText, terminalText, textWidth } from "../../src/text/terminal.js";
import { plainStyle, terminalStyle } from "../../src/text/terminal-style.js";
import { reasonLines } from "../../src/workspace/evidence.js";
import type { RunStatus } from "../../src/workspace/status.js";
import { anyCharacter } from "../any-character.js";
import { noCounts, progressOf, runFacts } from "../report/facts.js";
import { finishedRun, lineFacts } from "../report/run-fixture.js";

/** What a terminal must never get from others: control and format characters besides the two joiners, and halves. */
const forbidden = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** Text in which the dangerous characters are as frequent as the others. */
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
      ),
      fc.constantFrom("\u001b", "[", "\u0007", "\u0000", "\u007f", "\ufeff", "é", "日本", "👩‍🚀"),
    ),
  )
  .map((pieces) => pieces.join(""));

describe("text for a terminal (P24)", () => {
  test.each([
    ["a\u001b[31mred\u001b[0m", "ared"],
    ["a\u001b]0;title\u0007b", "ab"],
    ["a\u001b]8;;https://example.com\u001b\\link\u001b]8;;\u001b\\", "alink"],
    ["evil\u202efdp.exe", "evilfdp.exe"],
    ["one\r\ntwo\tthree\u2028four", "one two three four"],
    ["\u001b\u001b[31m[31mx", "[31mx"],
    ["half \ud83d", "half \ufffd"],
    ["👩‍🚀 and نمی‌خواهم", "👩‍🚀 and نمی‌خواهم"],
    ["e".padEnd(5_000, "\u0301"), "e".padEnd(9, "\u0301")],
    ["a\u200d\u200d\u200db", "a\u200db"],
    ["  plain – “quoted” ", "plain – “quoted”"],
  ])("%j becomes %j", (text, expected) => expect(terminalText(text)).toBe(expected));

  test("holds no control character, whatever came", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        expect(terminalText(text)).not.toMatch(forbidden);
      }),
    );
  });

  test("is cut by characters, not in the middle of one", () => {
    expect(shortText("🎈🎈🎈🎈", 3)).toBe("🎈🎈…");
    expect(shortText("👩‍🚀👍🏽🇩🇪 e\u0301a", 3)).toBe("👩‍🚀👍🏽…");
    expect(shortText("👩‍🚀👍🏽🇩🇪", 3)).toBe("👩‍🚀👍🏽🇩🇪");
    expect(shortText("ne\u0301e", 2)).toBe("n…");
    expect(shortText("abc", 3)).toBe("abc");
  });

  test.each([
    ["abcdef", 4, "abc…"],
    ["abcd", 4, "abcd"],
    ["日本語の絵", 5, "日本…"],
    ["日本語の絵", 6, "日本…"],
    ["日本語", 6, "日本語"],
    ["👩‍🚀👩‍🚀👩‍🚀", 5, "👩‍🚀👩‍🚀…"],
    ["日本", 0, ""],
    // Many joined emoji count as one character, and terminals show them side by side.
    [`a${"👩\u200d".repeat(100)}👩`, 5, "a…"],
  ])("%j in %i columns of a terminal is %j", (text, columns, expected) => {
    expect(cutToWidth(text, columns)).toBe(expected);
    expect(textWidth(expected)).toBeLessThanOrEqual(columns);
  });

  test.each([
    ["outputs/demo/cup.png", 20, "outputs/demo/cup.png"],
    ["outputs/demo/cup.png", 9, "…/cup.png"],
    ["絵/日本語.png", 9, "…本語.png"],
    ["cup.png", 0, ""],
  ])("of %j the end that fits into %i columns is %j", (text, columns, expected) => {
    expect(cutStartToWidth(text, columns)).toBe(expected);
    expect(textWidth(expected)).toBeLessThanOrEqual(columns);
  });

  test("holds none in a table either", () => {
    fc.assert(
      fc.property(hostile, fc.constantFrom(null, 60, 100), (text, width) => {
        const columns = [{ title: "id" }, { title: "text", flexible: true }];
        const shown = table(
          columns,
          [
            ["a", text],
            ["b", { text, tone: "bad" }],
          ],
          { width, colour: false },
        );
        for (const line of shown.split("\n")) expect(line).not.toMatch(forbidden);
      }),
    );
  });

  test("holds none in a summary, a problem or the progress line", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const failures = [{ rowId: text, kind: "provider" as const, reason: text }];
        const evidence = { sentAt: 0, status: 502, bodySha256: "00", taskId: text, externalTaskId: text };
        const held = [{ rowId: text, reason: text, evidence }];
        const facts = {
          ...runFacts,
          job: text,
          failures,
          held,
          lost: held,
          stops: [text],
          folder: text,
          nextStep: text,
        };
        const place = { file: text, row: 1, column: text, id: text };
        const shown = [
          ...summarise(facts, plainStyle).split("\n"),
          ...reasonLines(held, "bulkgen status 1"),
          ...statusText(
            {
              ...statusFacts,
              run: { ...finishedRun, jobName: text, manifest: text },
              folder: text,
              lost: held,
              trouble: [{ rowNumber: 2, rowId: text, state: "held", reason: text, evidence, nextAt: null }],
            },
            "/somewhere",
          ).split("\n"),
          problemLine({ place, message: text, expected: text, got: text, nearest: text }),
          progressLine({ ...progressOf({ reason: { kind: "disk", text, until: 9 } }), now: 0, elapsedMs: 0 }),
        ];
        for (const line of shown) expect(line).not.toMatch(forbidden);
      }),
    );
  });
});

describe("the look", () => {
  test("is plain where there is no terminal", () => {
    expect(terminalStyle({ columns: 60 }, {})).toEqual({ width: null, colour: false });
  });

  test("follows the terminal, and NO_COLOR", () => {
    expect(terminalStyle({ isTTY: true, columns: 60 }, {})).toEqual({ width: 60, colour: true });
    expect(terminalStyle({ isTTY: true, columns: 60 }, { NO_COLOR: "1" })).toEqual({
      width: 60,
      colour: false,
    });
    expect(terminalStyle({ isTTY: true, columns: 60 }, { TERM: "dumb" })).toEqual({
      width: 60,
      colour: false,
    });
    expect(terminalStyle({ isTTY: true, columns: 7 }, {})).toEqual({ width: 40, colour: true });
    expect(terminalStyle({ isTTY: true }, {})).toEqual({ width: 80, colour: true });
  });
});

const statusFacts: RunStatus = {
  ...lineFacts,
  forecast: null,
  endsAt: null,
  alive: true,
  left: null,
  counts: noCounts,
  results: null,
  folder: "",
  trouble: [],
};
