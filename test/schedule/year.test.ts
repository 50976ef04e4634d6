import { describe, expect, test } from "vitest";
import { credits } from "../../src/core/money.js";
import { Daemon, type ScheduledProcess } from "../../src/schedule/daemon.js";
import { dueBetween } from "../../src/schedule/due.js";
import type { ScheduledRunEnd } from "../../src/schedule/scheduled-run.js";
import { openSchedules, type Schedule, type Schedules } from "../../src/store/schedules.js";
import { amount } from "../fuzz/amount.js";
import { ManualClock } from "../manual-clock.js";

/**
 * A year of scheduled runs, over every clock change of three zones: a machine that sleeps, daemons that are killed, runs that
 * take more than a day, are lost, or stop for the day's limit. The days are counted by the calendar of each zone alone.
 */
const minute = 60_000;
/** Every scheduled run of these schedules is due at a whole one. */
const quarter = 15 * minute;
const late5m = 5 * minute;
const hour = 60 * minute;
const day = 24 * hour;
const noon = (month: number, date: number) => Date.UTC(2026, month - 1, date, 12);
/** `npm run fuzz` plays the whole year; otherwise the weeks of its clock changes, in the same order. */
const spans: readonly (readonly [from: number, until: number])[] =
  amount(0, 1) === 1
    ? [[noon(1, 1), noon(13, 1)]]
    : [
        [noon(3, 5), noon(4, 8)],
        [noon(10, 1), noon(11, 5)],
      ];

/** Times of day that the zone skips, and times that it shows twice. */
const lines: readonly Pick<Schedule, "name" | "cron" | "zone">[] = [
  { name: "berlin", cron: "30 2 * * *", zone: "Europe/Berlin" },
  { name: "new-york-gap", cron: "30 2 * * *", zone: "America/New_York" },
  { name: "new-york-twice", cron: "30 1 * * *", zone: "America/New_York" },
  { name: "lord-howe-gap", cron: "15 2 * * *", zone: "Australia/Lord_Howe" },
  { name: "lord-howe-twice", cron: "45 1 * * *", zone: "Australia/Lord_Howe" },
];

class Year {
  readonly clock: ManualClock;
  readonly schedules: Schedules;
  readonly began: string[] = [];
  readonly notifications: string[] = [];
  readonly counts = { killed: 0, asleep: 0 };
  private dead = new Set<object>();
  private seed = 1;
  private daemon: object;

  constructor(
    private readonly from: number,
    private readonly until: number,
  ) {
    this.clock = new ManualClock(from);
    this.schedules = openSchedules(":memory:", this.clock);
    this.daemon = this.start();
  }

  /** mulberry32: the same year every time. */
  chance(): number {
    this.seed = (this.seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  private start(): object {
    const life = {};
    const alive = <Value>(value: Value) =>
      this.dead.has(life) ? new Promise<Value>(() => {}) : Promise.resolve(value);
    const schedules = new Proxy(this.schedules, {
      get:
        (target, name: keyof Schedules) =>
        async (...args: never[]) =>
          alive(await (await alive(target[name] as (...given: never[]) => unknown))(...args)),
    });
    const daemon = new Daemon({
      whatToDo: () => "",
      schedules,
      clock: this.clock,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      claimForAll: async () => new Map(),
      launch: (command, { name }) => this.process(life, `${name} ${command.words.join(" ")}`),
      notify: (_, { event, message }) => this.notifications.push(`${event} ${message}`),
    });
    void daemon.go(new AbortController().signal);
    return life;
  }

  /** Mostly an hour; now and then more than a day, lost, or stopped by the day's limit. */
  private process(life: object, name: string): ScheduledProcess {
    this.began.push(name);
    const kind = this.chance();
    const takes = kind < 0.03 ? 30 * hour : (0.2 + this.chance()) * hour;
    const end: ScheduledRunEnd = {
      exit: 0,
      note: "26 of 26 archived",
      run: this.began.length,
      credits: credits(1),
      archived: 26,
      failed: 0,
      held: 0,
      resumeAt: null,
      ...(kind > 0.97 ? { exit: null, note: "ended by SIGKILL", run: null } : {}),
      ...(kind > 0.9 && kind <= 0.97 ? { exit: 8, resumeAt: this.clock.now() + 5 * hour } : {}),
    };
    const ended = this.clock
      .sleep(takes)
      .then(() => (this.dead.has(life) ? new Promise<ScheduledRunEnd>(() => {}) : end));
    return { stop() {}, ended };
  }

  /** Lets everything happen that can happen at this moment. */
  async settle(): Promise<void> {
    for (let round = 0; round < 3; round++) await new Promise((resolve) => setImmediate(resolve));
  }

  async live(): Promise<void> {
    for (const line of lines) {
      await this.schedules.add({
        ...line,
        manifest: "set.csv",
        flags: [],
        missed: "once",
        seenUntil: this.from,
        pausedAt: null,
      });
    }
    while (this.clock.now() < this.until) {
      await this.settle();
      const chance = this.chance();
      if (chance < 0.004) {
        this.dead.add(this.daemon);
        this.counts.killed++;
        if (chance < 0.002) this.clock.advance(this.chance() * 3 * day);
        this.daemon = this.start();
      } else if (chance < 0.007) {
        this.counts.asleep++;
        this.clock.advance(this.chance() * 2 * day);
      } else this.clock.advance(quarter - (this.clock.now() % quarter));
    }
    await this.settle();
  }
}

const dateIn = (zone: string, at: number) =>
  new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short" }).format(new Date(at));

test.each([
  ["skips the time", "2026-03-29", ["01:00", "12:30"]],
  ["shows it twice", "2026-10-25", ["00:30", "13:30"]],
])("each time of a list is due once on the day on which the zone %s", (_, date, due) => {
  const line = { cron: "30 2,14 * * *", zone: "Europe/Berlin" };
  const midnight = Date.parse(`${date}T00:00:00Z`);
  const times = dueBetween(line, midnight - 1, midnight + day, 10).toReversed();
  expect(times.map((at) => new Date(at).toISOString())).toEqual(due.map((time) => `${date}T${time}:00.000Z`));
});

describe("a year of scheduled runs", { tags: ["fuzz"] }, () => {
  test.each(spans)(
    "has one record for each date of each zone's calendar, and each run is made once, skipped or missed",
    async (from, until) => {
      const year = new Year(from, until);
      await year.live();
      const tally: Record<string, Record<string, number>> = {};
      for (const { name, zone } of lines) {
        const scheduledRuns = (await year.schedules.scheduledRuns(name, 1_000)).toReversed();
        const dates = scheduledRuns.map((scheduledRun) => dateIn(zone, scheduledRun.dueAt));
        const expected: string[] = [];
        for (let at = from + day; at <= until; at += day) expected.push(dateIn(zone, at));
        expect(dates, name).toEqual([...new Set([...expected])]);
        const states = scheduledRuns.map(({ state }) => state);
        const late = scheduledRuns.filter(
          ({ dueAt, startedAt }) => startedAt !== null && startedAt - dueAt > late5m,
        );
        tally[name] = {
          ...Object.fromEntries(
            [...new Set(states)].map((state) => [state, states.filter((other) => other === state).length]),
          ),
          "of these caught up": late.length,
        };
        // What began has a start; what did not has a reason.
        for (const scheduledRun of scheduledRuns) {
          if (scheduledRun.state === "missed" || scheduledRun.state === "skipped") {
            expect(scheduledRun.startedAt).toBeNull();
            expect(scheduledRun.note).toMatch(/was not running|still in progress/);
          } else expect(scheduledRun.startedAt).not.toBeNull();
        }
        const running = scheduledRuns.filter(({ state }) => state === "running" || state === "waiting");
        expect(running.length).toBeLessThanOrEqual(2);
      }
      console.log(JSON.stringify({ ...year.counts, processes: year.began.length, tally }));
    },
  );
});
