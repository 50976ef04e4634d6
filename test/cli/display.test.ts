import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { openDisplay } from "../../src/cli/output/open-display.js";
import { plainReason } from "../../src/core/reason.js";
import "../../src/cli/output/live-region.js";
import { credits } from "../../src/core/money.js";
import type { Machine } from "../../src/machine.js";
import type { Progress } from "../../src/run/loop.js";
import type { News } from "../../src/store/workspace/news.js";
import { takesLinks } from "../../src/text/terminal-links.js";
import { ManualClock } from "../manual-clock.js";
import { noCounts, progressOf } from "../report/facts.js";
import { Screen } from "./screen.js";

function archived(number: number, change: Partial<Progress> = {}): Progress {
  const counts = { ...noCounts, archived: number, processing: 30 - number };
  return progressOf({ counts, spent: credits(100), cap: credits(120), forecastMs: 60_000, ...change });
}

/** A display on a terminal of this size, or on a pipe. */
function opened(size?: { columns: number; rows: number }, env: Record<string, string> = {}) {
  const clock = new ManualClock();
  const screen = new Screen(size?.columns ?? 1_000, size?.rows ?? 1_000);
  let writes = 0;
  const stderr = new Writable({
    decodeStrings: false,
    write(text: string, _, done) {
      writes++;
      screen.write(text);
      done();
    },
  });
  if (size !== undefined) Object.assign(stderr, { isTTY: true, ...size });
  const display = openDisplay(false, { stderr, clock, env, cwd: "/srv" } as unknown as Machine);
  const news: News = { newestFile: null, trouble: [], awaiting: { items: 0, rowIds: [] } };
  let readings = 0;
  return {
    display,
    clock,
    news,
    screen,
    readings: () => readings,
    writes: () => writes,
    begin: () =>
      display.begin({
        id: 3,
        sandbox: false,
        jobName: "demo",
        folder: "/srv/outputs/demo",
        elapsedMs: 0,
        news: async () => ({
          async read() {
            readings++;
            return news;
          },
          async close() {},
        }),
      }),
    lines: () => screen.lines(),
    resize(columns: number) {
      Object.assign(stderr, { columns });
      screen.resize(columns);
    },
    /** Moves the clock and lets what was woken run. */
    async pass(ms: number) {
      clock.advance(ms);
      await settled();
    },
  };
}

/** The module that draws is loaded when something is drawn first. */
async function settled(): Promise<void> {
  await import("../../src/cli/output/live-region.js");
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
}

const small = { columns: 60, rows: 24 };

test("on a terminal the last of many quick updates is shown within half a second", async () => {
  const { display, begin, lines, pass, writes } = opened(small);
  begin();
  display.progress(archived(20));
  await settled();
  for (let number = 24; number <= 28; number++) display.progress(archived(number));
  expect(lines().join()).toContain("20 of 30 items");
  await pass(500);
  expect(lines().join()).toContain("28 of 30 items");
  expect(writes()).toBe(2);
  display.end();
});

test("on a terminal the times move while nothing happens, and the countdown runs", async () => {
  const { display, begin, clock, lines, pass, news } = opened(small);
  begin();
  news.newestFile = "cup.png";
  display.progress(archived(25, { reason: plainReason("minute", clock.now() + 12_000) }));
  await settled();
  await pass(500);
  await pass(500);
  expect(lines()).toEqual([
    "demo, run 3 · 0:01, ~0:11 left",
    "archived    ━━━━━━━━━━━━━━━━━━━━────  25 of 30 items",
    "credits     ━━━━━━━━━━━━━━━━━━━━────  100 of 120 credits",
    "minute      ━━━━━━━━━━━━━───────────  31 of 60 requests",
    "day         ━───────────────────────  340 of 10000 requests",
    "items       5 at the service",
    "newest      outputs/demo/cup.png",
    "now         minute quota used up, next request in 11s",
  ]);
  for (let half = 0; half < 24; half++) await pass(500);
  expect(lines().at(0)).toBe("demo, run 3 · 0:13, ~0:10 left");
  expect(lines().join()).not.toContain("quota used up");
  display.end();
});

test("nothing is written while nothing changes, and the news are not read again", async () => {
  const { display, begin, pass, writes, readings } = opened(small);
  begin();
  display.progress(archived(25));
  await settled();
  await pass(500);
  const [before, read] = [writes(), readings()];
  await pass(0);
  expect([writes(), readings()]).toEqual([before, read]);
  await pass(500);
  expect([writes(), readings()]).toEqual([before + 1, read]);
  display.end();
});

test("messages and log lines stand above the view, whole, and the view stays below", async () => {
  const { display, begin, lines, screen } = opened(small);
  begin();
  display.progress(archived(25));
  await settled();
  const log = display.beside({ write: (text: string) => screen.write(text) } as unknown as Machine["stderr"]);
  display.say("interrupted: waiting for requests in flight.");
  log.write("10:00:00 WARN something to know\n");
  log.write("10:00:01 WARN something else\n");
  expect(lines()).toEqual([
    "interrupted: waiting for requests in flight.",
    "10:00:00 WARN something to know",
    "10:00:01 WARN something else",
    "",
    "demo, run 3 · 0:00, ~0:10 left",
    ...Array.from({ length: 5 }, () => expect.any(String)),
  ]);
  display.end();
});

test("at the end nothing of the view is left", async () => {
  const { display, begin, lines, screen, clock } = opened(small);
  begin();
  display.say("the plan");
  display.progress(archived(25));
  await settled();
  display.end();
  screen.write("the summary\n");
  expect(lines()).toEqual(["the plan", "the summary"]);
  expect(clock.asleep).toBe(0);
});

test("a view that ends before it could be drawn is not drawn", async () => {
  const { display, begin, lines } = opened(small);
  begin();
  display.progress(archived(25));
  display.end();
  await settled();
  expect(lines()).toEqual([]);
});

test("made narrower or wider, the terminal shows the view once, in its new width", async () => {
  const { display, begin, lines, pass, resize } = opened({ columns: 120, rows: 30 });
  begin();
  display.say("the plan");
  display.progress(archived(25, { reason: { kind: "stopping", text: "long ".repeat(30), until: null } }));
  await settled();
  for (const columns of [60, 40, 25, 200]) {
    resize(columns);
    await pass(500);
    const shown = lines();
    expect(shown[0]).toBe("the plan");
    expect(shown.filter((line) => line.startsWith("demo, run 3"))).toHaveLength(1);
    expect(shown.filter((line) => line.startsWith("now "))).toHaveLength(1);
    expect(Math.max(...shown.map((line) => line.length))).toBeLessThan(columns);
  }
  display.end();
  expect(lines()).toEqual(["the plan"]);
});

test("a question is not overwritten by what was waited for before it", async () => {
  const { display, clock, lines, pass } = opened(small);
  display.waiting(plainReason("minute", clock.now() + 40_000));
  await settled();
  expect(lines()).toEqual(["minute quota used up, next request in 40s"]);
  display.say("the plan");
  display.end();
  await pass(5_000);
  expect(lines()).toEqual(["the plan"]);
  expect(clock.asleep).toBe(0);
});

test("where the terminal takes links, the newest file is one, and nothing is drawn besides text", async () => {
  const { display, begin, lines, pass, news, screen } = opened(small, { KITTY_WINDOW_ID: "1" });
  begin();
  news.newestFile = "cup.png";
  display.progress(archived(1));
  await settled();
  await pass(500);
  expect(lines()[0]).toContain("demo, run 3");
  expect(lines()).toContainEqual(expect.stringContaining("outputs/demo/cup.png"));
  expect(screen.links).toContain("file:///srv/outputs/demo/cup.png");
  display.end();
  expect(lines()).toEqual([]);
});

test.each([
  {},
  { TERM: "xterm-256color" },
  { KITTY_WINDOW_ID: "1", TMUX: "/tmp/tmux" },
  { TERM: "screen-256color", TERM_PROGRAM: "iTerm.app" },
  { TERM_PROGRAM: "iTerm.app", SSH_CONNECTION: "1" },
  { TERM: "xterm-kitty", CI: "true" },
])("with %j there are no links", (env) => {
  expect(takesLinks(env)).toBe(false);
});

test("piped, a line is printed on change, at most every 5 seconds, and the last one always", async () => {
  const { display, begin, lines, pass, clock } = opened();
  begin();
  display.progress(archived(1));
  display.progress(archived(2));
  display.progress(archived(3));
  expect(lines()).toHaveLength(1);
  await pass(5_000);
  expect(lines()).toEqual([
    expect.stringContaining("1/30 archived"),
    expect.stringContaining("3/30 archived · 0:05"),
  ]);
  await pass(20_000);
  // Time alone is no change.
  display.progress(archived(3));
  expect(lines()).toHaveLength(2);
  display.progress(archived(29));
  display.progress(archived(30));
  display.end();
  expect(lines().at(-1)).toContain("30/30 archived · 0:25");
  expect(clock.asleep).toBe(0);
});

test("piped, a count is printed only of a command that takes some seconds", async () => {
  const { display, lines, pass } = opened();
  display.counting("1 of 900 files checked");
  await pass(4_000);
  display.counting("400 of 900 files checked");
  expect(lines()).toEqual([]);
  await pass(1_000);
  display.counting("500 of 900 files checked");
  display.end();
  expect(lines()).toEqual(["500 of 900 files checked"]);
});

test("piped, a line every 30 seconds shows that the run goes on", async () => {
  const { display, begin, lines, pass } = opened();
  begin();
  display.progress(archived(3));
  for (let seconds = 0; seconds < 90; seconds += 5) await pass(5_000);
  expect(lines().map((line) => line.slice(0, 22))).toEqual([
    "3/30 archived · 0:00, ",
    "3/30 archived · 0:30, ",
    "3/30 archived · 1:00, ",
    "3/30 archived · 1:30, ",
  ]);
  display.end();
});

test.each([{ CI: "true" }, { TERM: "dumb" }])("with %j lines are printed, as to a pipe", async (env) => {
  const { display, begin, lines, writes } = opened({ columns: 120, rows: 24 }, env);
  begin();
  display.progress(archived(3));
  await settled();
  expect(lines()[0]).toContain("3/30 archived · 0:00");
  expect(writes()).toBe(1);
  display.end();
});
