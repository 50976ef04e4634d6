import { expect, test } from "vitest";
import { schedulesTable, type UpcomingRun } from "../../src/schedule/upcoming.js";
import { plainStyle } from "../../src/text/terminal-style.js";
import { ManualClock } from "../manual-clock.js";

const clock = new ManualClock(Date.UTC(2026, 10, 20, 20));

function upcoming(name: string): UpcomingRun {
  const schedule = {
    name,
    manifest: "autumn.csv",
    cron: "*/15 9-17 * * 1-5",
    zone: "Europe/Berlin",
    flags: [],
    missed: "once" as const,
    seenUntil: 0,
    pausedAt: null,
  };
  return { schedule, settings: [], scheduledRuns: [], isAgreed: true };
}

test("the list of schedules has one line for each, and a few where the terminal is too narrow for one", () => {
  const names = ["autumn-campaign-every-quarter-hour-de", "autumn-campaign-every-quarter-hour-en"];
  const all = names.map(upcoming);
  expect(schedulesTable(all, clock).split("\n")).toHaveLength(3);
  const narrow = schedulesTable(all, clock, { ...plainStyle, width: 60 });
  expect(narrow).toBe(
    names
      .map(
        (name) => `${name}
reads  autumn.csv
due    */15 9-17 * * 1-5 in Europe/Berlin
next   Mon 2026-11-23 09:00 CET
last   no run yet`,
      )
      .join("\n\n"),
  );
});
