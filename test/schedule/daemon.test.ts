import { beforeEach, describe, expect, test } from "vitest";
import { Daemon, type DaemonEvent } from "../../src/schedule/daemon.js";
import type { ScheduledRunEnd } from "../../src/schedule/scheduled-run.js";
import { schedulesTable } from "../../src/schedule/upcoming.js";
import { byHand, openSchedules, type Schedule, type Schedules } from "../../src/store/schedules.js";
import { ManualClock } from "../manual-clock.js";

const hour = 3_600_000;
const evening = Date.UTC(2026, 10, 20, 20);
/** 02:00 in Berlin. */
const due = Date.UTC(2026, 10, 21, 1);

const fine: ScheduledRunEnd = {
  exit: 0,
  note: "2 of 2 archived",
  run: 7,
  credits: null,
  archived: 2,
  failed: 0,
  held: 0,
  resumeAt: null,
};

let clock: ManualClock;
let schedules: Schedules;
let began: { command: string; end(end: ScheduledRunEnd): void }[];
let notifications: DaemonEvent[];
let warnings: string[];
let stops: number;

beforeEach(() => {
  clock = new ManualClock(evening);
  schedules = openSchedules(":memory:", clock);
  began = [];
  notifications = [];
  warnings = [];
  stops = 0;
});

async function add(change: Partial<Schedule> = {}): Promise<void> {
  await schedules.add({
    name: "nightly",
    manifest: "set.csv",
    cron: "0 2 * * *",
    zone: "Europe/Berlin",
    flags: [],
    missed: "once",
    seenUntil: clock.now(),
    pausedAt: null,
    ...change,
  });
}

function start(): { stop: AbortController; over: Promise<void> } {
  const stop = new AbortController();
  const daemon = new Daemon({
    schedules,
    clock,
    log: { debug() {}, info() {}, warn: (_, line) => warnings.push(line), error() {} },
    claimForAll: async () => new Map(),
    launch({ command, words }) {
      let end: (end: ScheduledRunEnd) => void = () => {};
      const ended = new Promise<ScheduledRunEnd>((resolve) => {
        end = resolve;
      });
      began.push({ command: [command, ...words].join(" "), end });
      return { ended, stop: () => stops++ };
    },
    whatToDo: (_, { exit }) => `exit ${exit}: do this`,
    notify: (_, notification) => notifications.push(notification),
  });
  return { stop, over: daemon.go(stop.signal) };
}

async function settle(): Promise<void> {
  for (let round = 0; round < 5; round++) await new Promise((resolve) => setImmediate(resolve));
}

async function passes(ms: number): Promise<void> {
  await settle();
  clock.advance(ms);
  await settle();
}

const scheduledRuns = async () => (await schedules.scheduledRuns("nightly", 10)).toReversed();

describe("a scheduled run", () => {
  test("begins when it is due, and is written down with what came of it", async () => {
    await add({ flags: [["--sandbox"], ["--until", "06:00"], ["--edition", "{{ date }}"]] });
    start();
    await passes(due - evening - 1);
    expect(began).toEqual([]);
    await passes(1);
    expect(began.map(({ command }) => command)).toEqual([
      "run --sandbox --if-locked=wait --until=2026-11-21T05:00:00.000Z --edition=2026-11-21 --yes -- set.csv",
    ]);
    expect(await scheduledRuns()).toMatchObject([{ dueAt: due, state: "running", startedAt: due }]);
    clock.advance(hour);
    began[0]?.end(fine);
    await settle();
    expect(await scheduledRuns()).toMatchObject([{ state: "ended", exit: 0, run: 7, endedAt: due + hour }]);
    expect(notifications).toEqual([]);
  });

  test("that did not end well is a warning with what to do, unless it continues by itself", async () => {
    await add();
    start();
    await passes(due - evening);
    began[0]?.end({ ...fine, exit: 10, resumeAt: due + hour });
    await passes(hour);
    expect(warnings).toEqual([]);
    began[1]?.end({ ...fine, exit: 5, failed: 1, note: "1 of 2 archived, 1 failed" });
    await settle();
    expect(warnings).toEqual([
      expect.stringMatching(
        /^nightly: the scheduled run of .*: 1 of 2 archived, 1 failed \(exit 5\); exit 5: do this$/,
      ),
    ]);
  });

  test("of a paused schedule is neither started nor missed, and what has begun goes on", async () => {
    await add();
    start();
    await passes(due - evening);
    began[0]?.end({ ...fine, exit: 10, resumeAt: due + 30 * hour });
    await settle();
    await schedules.edit("nightly", { pausedAt: clock.now() });
    await passes(24 * hour);
    expect(began).toHaveLength(1);
    await passes(6 * hour);
    expect(began.map(({ command }) => command.split(" ")[0])).toEqual(["run", "resume"]);
    began[1]?.end(fine);
    await passes(10 * hour);
    await schedules.edit("nightly", { pausedAt: null, seenUntil: clock.now() });
    await passes(7 * hour);
    expect((await scheduledRuns()).map(({ state }) => state)).toEqual(["ended"]);
    await passes(hour);
    expect(began).toHaveLength(3);
    expect(notifications).toEqual([]);
  });

  test("is claimed once, even if another process uses the same database", async () => {
    await add();
    start();
    start();
    await passes(due - evening);
    await passes(2 * hour);
    expect(began).toHaveLength(1);
  });

  test("that comes due while the previous one is in progress is skipped, with a notification", async () => {
    await add({ cron: "0 * * * *" });
    start();
    await passes(hour);
    await passes(hour);
    expect(began).toHaveLength(1);
    expect(await scheduledRuns()).toMatchObject([{ state: "running" }, { state: "skipped" }]);
    expect(notifications).toMatchObject([
      { event: "skipped", message: expect.stringContaining("still in progress") },
    ]);
    began[0]?.end(fine);
    await passes(hour);
    expect(began).toHaveLength(2);
  });

  test("stopped by the day's limit continues as the same run when it can", async () => {
    await add({ flags: [["--sandbox"], ["--max-credits", "9"], ["--until", "09:00"]] });
    start();
    await passes(due - evening);
    began[0]?.end({ ...fine, exit: 8, resumeAt: due + 5 * hour });
    await settle();
    expect(await scheduledRuns()).toMatchObject([{ state: "waiting", resumeAt: due + 5 * hour, run: 7 }]);
    await passes(5 * hour);
    expect(began[1]?.command).toBe(
      "resume --sandbox --max-credits=9 --if-locked=wait --until=2026-11-21T08:00:00.000Z --yes 7",
    );
    began[1]?.end(fine);
    await settle();
    expect(await scheduledRuns()).toMatchObject([{ state: "ended", exit: 0 }]);
  });

  test.each([2, 3, 4, 9])(
    "that cannot be continued (exit %s) has not ended: it is tried again, and said once",
    async (exit) => {
      await add();
      start();
      await passes(due - evening);
      began[0]?.end({ ...fine, exit: 8, resumeAt: due + hour });
      const refused = { ...fine, exit, run: null, archived: null, failed: null, held: null, note: "no key" };
      for (const tries of [1, 2]) {
        await passes(hour);
        began[tries]?.end(refused);
        await settle();
        expect(await scheduledRuns()).toMatchObject([{ state: "waiting", run: 7, exit, note: "no key" }]);
      }
      expect(notifications).toMatchObject([
        { event: "trouble", message: expect.stringContaining("run 7 cannot be continued: no key") },
      ]);
      await passes(hour);
      began[3]?.end({ ...refused, note: "another reason" });
      await settle();
      expect(notifications).toHaveLength(2);
      const [scheduledRun] = await schedules.scheduledRuns("nightly", 1);
      const [schedule] = await schedules.all();
      if (scheduledRun === undefined || schedule === undefined) throw new Error("nothing is scheduled");
      const told = schedulesTable(
        [{ schedule, settings: [], isAgreed: true, scheduledRuns: [scheduledRun] }],
        clock,
      );
      expect(told).toContain(`run 7 cannot be continued: another reason (exit ${exit}); tried again at `);
      await passes(hour);
      expect(began[4]?.command).toBe("resume --if-locked=wait --yes 7");
      began[4]?.end(fine);
      await settle();
      expect(await scheduledRuns()).toMatchObject([{ state: "ended", exit: 0 }]);
    },
  );

  test("that nobody has to continue any more has ended", async () => {
    await add();
    start();
    await passes(due - evening);
    began[0]?.end({ ...fine, exit: 8, resumeAt: due + hour });
    await passes(hour);
    began[1]?.end({ ...fine, run: null, note: "nothing to resume" });
    await settle();
    expect(await scheduledRuns()).toMatchObject([{ state: "ended", exit: 0, run: 7 }]);
  });

  test("whose process was lost continues once; lost again, it is over; each loss sends a notification", async () => {
    await add();
    start();
    await passes(due - evening);
    const lost = { ...fine, exit: null, note: "its process was ended by SIGKILL", run: null };
    began[0]?.end(lost);
    await passes(60_000);
    expect(began).toHaveLength(2);
    began[1]?.end(lost);
    await passes(hour);
    expect(began).toHaveLength(2);
    expect(await scheduledRuns()).toMatchObject([{ state: "ended", exit: null, losses: 2 }]);
    expect(notifications.map(({ event }) => event)).toEqual(["lost", "lost"]);
  });
});

describe("missed runs", () => {
  test("are caught up once, by the latest one; the others are reported", async () => {
    await add({ flags: [["--edition", "{{ date }}"]] });
    clock.advance(3 * 24 * hour);
    start();
    await settle();
    expect(began.map(({ command }) => command)).toEqual([expect.stringContaining("--edition=2026-11-23 ")]);
    expect((await scheduledRuns()).map(({ state }) => state)).toEqual(["missed", "missed", "running"]);
    expect(notifications).toMatchObject([
      { event: "missed", message: expect.stringContaining("2 scheduled runs") },
    ]);
  });

  test("are left out where that is wanted", async () => {
    await add({ missed: "skip" });
    clock.advance(24 * hour);
    start();
    await settle();
    expect(began).toEqual([]);
    expect(await scheduledRuns()).toMatchObject([{ dueAt: due, state: "missed" }]);
  });

  test("are not begun after their end, in the middle of a day", async () => {
    await add({ flags: [["--until", "06:00"]] });
    clock.advance(due - evening + 5 * hour);
    start();
    await settle();
    expect(began).toEqual([]);
    expect(notifications).toMatchObject([
      { event: "missed", message: expect.stringContaining("the daemon was not running before its end") },
    ]);
  });

  test("of a clock that was years ahead do not keep the schedule waiting, and none begins twice", async () => {
    const years = 5 * 365 * 24 * hour;
    clock.set(years);
    await add();
    start();
    const ends = async () => {
      began.at(-1)?.end(fine);
      await settle();
    };
    await passes(24 * hour);
    await ends();
    clock.set(-years);
    await passes(60_000);
    await passes(24 * hour);
    expect(began).toHaveLength(2);
    await ends();
    clock.set(-24 * hour);
    await passes(60_000);
    await passes(24 * hour);
    expect(began).toHaveLength(2);
    await passes(24 * hour);
    expect(began).toHaveLength(3);
  });

  test("that the clock jumps over in a sleeping laptop are seen within half a minute of waking", async () => {
    await add();
    start();
    await settle();
    clock.advance(due - evening + hour);
    await settle();
    expect(began).toHaveLength(1);
  });
});

describe("a daemon", () => {
  test("that was killed continues the run that was in progress", async () => {
    await add();
    await schedules.claim("nightly", evening - hour, { state: "running", startedAt: evening - hour, run: 3 });
    start();
    await settle();
    expect(began.map(({ command }) => command)).toEqual(["resume --if-locked=wait --yes 3"]);
  });

  test("leaves a run alone that a person has started by hand, and that may be in progress", async () => {
    await add();
    await schedules.claim("nightly", evening - hour, {
      state: "running",
      startedAt: evening - hour,
      note: byHand,
    });
    start();
    await passes(60_000);
    expect(began).toEqual([]);
    expect(await scheduledRuns()).toMatchObject([{ state: "running", note: byHand }]);
  });

  test("that is stopped ends its run after the requests in flight, and the next daemon continues it", async () => {
    await add();
    const { stop, over } = start();
    await passes(due - evening);
    stop.abort();
    await settle();
    expect(stops).toBe(1);
    began[0]?.end({ ...fine, exit: 130 });
    await over;
    expect(await scheduledRuns()).toMatchObject([{ state: "waiting", run: 7 }]);
    start();
    await settle();
    expect(began[1]?.command).toBe("resume --if-locked=wait --yes 7");
  });

  const otherwise: [string, () => Promise<unknown>][] = [
    [
      "was changed to another service",
      () => schedules.edit("nightly", { flags: [["--sandbox"]] }, "changed"),
    ],
    [
      "was removed and added again",
      async () => {
        await schedules.remove("nightly", "changed");
        await add({ seenUntil: clock.now() });
      },
    ],
  ];

  test.each(otherwise)("never continues a run of a schedule that %s", async (_, change) => {
    await add();
    // An earlier daemon was killed during this one.
    await schedules.claim("nightly", evening - 2 * hour, { state: "running", run: 2 });
    await change();
    expect(await scheduledRuns()).toMatchObject([{ state: "ended", run: 2, note: "changed" }]);
    start();
    await passes(due - evening);
    expect(began.map(({ command }) => command.split(" ")[0])).toEqual(["run"]);
    // This one is in progress, and the next one waits.
    await change();
    began[0]?.end({ ...fine, exit: 8, resumeAt: due + hour });
    await passes(23 * hour);
    expect((await scheduledRuns()).at(-1)).toMatchObject({ state: "ended", exit: 8, run: 7, resumeAt: null });
    await passes(hour);
    began[1]?.end({ ...fine, exit: 8, resumeAt: due + 30 * hour });
    await settle();
    await change();
    await passes(10 * hour);
    expect(began.map(({ command }) => command.split(" ")[0])).toEqual(["run", "run"]);
    expect((await scheduledRuns()).map(({ state }) => state)).toEqual(["ended", "ended", "ended"]);
  });

  test("begins nothing of a schedule that was removed, also not under the same name again", async () => {
    await add();
    start();
    await passes(due - evening);
    began[0]?.end(fine);
    await settle();
    await schedules.remove("nightly", "removed");
    await add({ seenUntil: evening, pausedAt: null });
    await passes(hour);
    expect(began).toHaveLength(1);
  });
});
