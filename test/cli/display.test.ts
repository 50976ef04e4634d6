import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { openDisplay } from "../../src/cli/output/display.js";
import { credits } from "../../src/core/money.js";
import type { Machine } from "../../src/machine.js";
import type { Progress } from "../../src/run/loop.js";
import { ManualClock } from "../manual-clock.js";
import { noCounts, progressOf } from "../report/facts.js";

function archived(number: number, change: Partial<Progress> = {}): Progress {
  const counts = { ...noCounts, archived: number, processing: 30 - number };
  return progressOf({ counts, spent: credits(100), cap: credits(120), forecastMs: 60_000, ...change });
}

/** A display on a terminal of this width, or on a pipe; `lines` are all that it has drawn. */
function opened(columns?: number) {
  const clock = new ManualClock();
  let text = "";
  const stderr = new Writable({
    decodeStrings: false,
    write(piece: string, _, done) {
      text += piece;
      done();
    },
  });
  if (columns !== undefined) Object.assign(stderr, { isTTY: true, columns });
  const display = openDisplay(false, { stderr, clock } as unknown as Machine);
  return {
    display,
    clock,
    lines: () =>
      text
        .replaceAll("\r\u001b[K", "\n")
        .split("\n")
        .filter((line) => line !== ""),
    /** Moves the clock and lets what was woken run. */
    async pass(ms: number) {
      clock.advance(ms);
      await new Promise(setImmediate);
    },
  };
}

test("on a terminal the last of many quick updates is shown within half a second", async () => {
  const { display, lines, pass } = opened(80);
  for (let number = 24; number <= 28; number++) display.progress(archived(number));
  expect(lines()).toEqual([expect.stringContaining("24/30 archived")]);
  await pass(500);
  expect(lines().at(-1)).toContain("28/30 archived");
  display.end();
});

test("on a terminal the times move while nothing happens, and the countdown runs", async () => {
  const { display, clock, lines, pass } = opened(60);
  display.progress(archived(25, { waiting: "minute", until: clock.now() + 12_000 }));
  await pass(500);
  await pass(500);
  expect(lines().at(-1)).toBe("25/30 · next in 11s · 0:01, ~0:59 left · 100/120 credits");
  for (let half = 0; half < 24; half++) await pass(500);
  expect(lines().at(-1)).toMatch(/^25\/30 archived · 0:13, ~0:47 left · 100 of 120 credits$/);
  for (const line of lines()) expect(line.length).toBeLessThan(60);
  display.end();
});

test("a message stands above the line, which is drawn again", async () => {
  const { display, lines, pass } = opened(60);
  display.progress(archived(25));
  display.say("interrupted: waiting for requests in flight.");
  await pass(500);
  expect(lines().slice(-2)).toEqual([
    "interrupted: waiting for requests in flight.",
    expect.stringContaining("25/30 archived"),
  ]);
  display.end();
});

test("a question is not overwritten by what was waited for before it", async () => {
  const { display, clock, lines, pass } = opened(60);
  display.waiting("minute", clock.now() + 40_000);
  display.say("the plan");
  display.end();
  await pass(5_000);
  expect(lines().at(-1)).toBe("the plan");
  expect(clock.asleep).toBe(0);
});

test("piped, a line is printed on change, at most every 5 seconds, and the last one always", async () => {
  const { display, lines, pass, clock } = opened();
  display.progress(archived(1));
  display.progress(archived(2));
  display.progress(archived(3));
  expect(lines()).toHaveLength(1);
  await pass(5_000);
  expect(lines()).toEqual([
    expect.stringContaining("1/30 archived"),
    expect.stringContaining("3/30 archived · 0:05"),
  ]);
  // Time alone is no change.
  await pass(60_000);
  display.progress(archived(3));
  await pass(60_000);
  expect(lines()).toHaveLength(2);
  display.progress(archived(29));
  display.progress(archived(30));
  display.end();
  expect(lines().at(-1)).toContain("30/30 archived · 2:05");
  expect(clock.asleep).toBe(0);
});
