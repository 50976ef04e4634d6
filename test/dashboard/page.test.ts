import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { cronOf, cronWords, runWords } from "../../src/page/dashboard/parts/cron.js";
import { endWords, runStateWords } from "../../src/page/dashboard/parts/run-words.js";
import { inTurn } from "../../src/page/dashboard/server/in-turn.js";
import { visible } from "../../src/page/parts/visible.js";

describe("text that somebody else wrote", () => {
  test.each([
    ["an escape sequence", "a\u001b[2Jb", "a\u241b[2Jb"],
    ["a bell", "a\u0007b", "a\u2407b"],
    ["a right-to-left override", "a\u202egnp.exe", "a⟨U+202E⟩gnp.exe"],
    ["an isolate that is never closed", "a\u2067b", "a⟨U+2067⟩b"],
    ["a soft hyphen", "a\u00adb", "ab"],
    ["the line ends of Windows", "a\r\nb", "a\nb"],
    ["half of a surrogate pair", "a\ud83db", "a\ufffdb"],
    ["marks without end on a letter", `Z${"\u0301".repeat(500)}`, `Z${"\u0301".repeat(8)}`],
    ["a tag", "<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"],
  ])("shows %s harmlessly", (_, text, shown) => expect(visible(text)).toBe(shown));

  test.each(["one\ntwo\tthree", "👩‍👩‍👧‍👦", "مرحبا", "नमस्ते"])("keeps %j", (text) =>
    expect(visible(text)).toBe(text),
  );
});

describe("the times of a schedule", () => {
  test.each([
    ["hourly", "06:30", 1, "30 * * * *", "every hour at minute 30"],
    ["daily", "06:00", 1, "0 6 * * *", "every day at 06:00"],
    ["weekdays", "18:05", 1, "5 18 * * 1-5", "Monday to Friday at 18:05"],
    ["weekly", "09:00", 0, "0 9 * * 0", "every Sunday at 09:00"],
    ["monthly", "00:15", 1, "15 0 1 * *", "on the first of every month at 00:15"],
  ] as const)("%s at %s are a cron expression and plain words", (preset, time, weekday, cron, words) => {
    expect(cronOf(preset, time, weekday)).toBe(cron);
    expect(cronWords(cron)).toBe(words);
  });

  test.each(["*/5 * * * *", "0 6 1 1 *", "@daily", "0 6 * * 1,3"])("%s is shown as it is", (cron) =>
    expect(cronWords(cron)).toBe(cron),
  );
});

describe("what a schedule says before it is saved", () => {
  test("its runs make what is new, unless they are asked to make everything again", () => {
    expect(runWords({ maxCredits: 60 })).toBe(
      "Each run makes what is new in the sheet and spends the credits for it, at most 60.",
    );
    expect(runWords({ fresh: true })).toBe(
      "Each run makes everything in the sheet again, in a new edition, and spends the credits for it; set a cap to limit that.",
    );
  });
});

describe("how a run stands", () => {
  test.each([
    ["works", { alive: true }, "in progress"],
    ["was killed", { state: "running" }, "crashed"],
    ["was cancelled", { state: "cancelled" }, "cancelled"],
    ["has held items", { exit: "held", counts: { held: 1, blocked: 2 } }, "stopped, some held"],
    [
      "has only items whose approvals or inputs are missing",
      { exit: "held", counts: { blocked: 2 } },
      "waits for you",
    ],
    [
      "has an item to approve",
      { exit: "held", counts: { archived: 2, failed: 1 }, awaiting: 1 },
      "waits for your approval",
    ],
    [
      "has something to do again after a decision",
      { counts: { archived: 1, planned: 1 } },
      "ready to continue",
    ],
    ["has all its items approved by now", { exit: "held", counts: { archived: 2 } }, "finished"],
    [
      "has its held item skipped by now, and one that failed",
      { exit: "held", counts: { archived: 2, failed: 1, dropped: 1 } },
      "finished, some failed",
    ],
    [
      "has none of its items any more",
      { exit: "held", endedAt: "2026-11-26T19:44:00.000Z", counts: { archived: 0 } },
      "finished",
    ],
    ["ended for want of credits", { exit: "credits" }, "stopped: credits"],
  ] as const)("a run that %s", (_, facts, words) => {
    const usual = {
      state: "interrupted",
      alive: false,
      exit: null,
      endedAt: null,
      counts: {},
      awaiting: 0,
    } as const;
    expect(runStateWords({ ...usual, ...facts } as never)).toBe(words);
  });
});

describe("what is asked for again and again", () => {
  test("is done to its end, however often it is asked for meanwhile, and then once more", async () => {
    const ends: (() => void)[] = [];
    const ask = inTurn(() => new Promise<void>((resolve) => ends.push(resolve)));
    const end = async () => {
      ends.at(-1)?.();
      await nextTurn();
    };
    ask();
    for (let times = 0; times < 5; times++) ask();
    expect(ends).toHaveLength(1);
    await end();
    expect(ends).toHaveLength(2);
    await end();
    expect(ends).toHaveLength(2);
    ask();
    expect(ends).toHaveLength(3);
  });
});

describe("when a run ends", () => {
  const began = new Date(2026, 10, 26, 7, 30).getTime();
  const minute = 60_000;

  test.each([
    ["by its forecast, until something is done", { planned: 10 }, 2 * minute, "about 07:40, in 8m"],
    ["by what is done, if that is more", { archived: 5, processing: 5 }, 2 * minute, "about 07:37, in 5m"],
    ["by its pace, if it is late", { archived: 5, failed: 1, planned: 4 }, 20 * minute, "about 07:58, in 8m"],
    ["soon, when all is done", { archived: 10 }, 2 * minute, "ending"],
    [
      "at a time that nobody knows, if nothing is done when all should be",
      { planned: 10 },
      20 * minute,
      "not known",
    ],
    ["when somebody decides", { archived: 5, held: 5 }, 2 * minute, "not known"],
  ] as const)("%s", (_, counts, elapsedMs, words) => {
    const live = { counts, forecastMs: 10 * minute, since: began, reason: null };
    expect(endWords(live as never, began + elapsedMs)).toBe(words);
    // Nobody knows how long an outage or a full disk lasts.
    const reason = { kind: "disk", text: "disk full", until: null };
    expect(endWords({ ...live, reason } as never, began + elapsedMs)).toBe("not known");
  });
});
