import { describe, expect, test } from "vitest";
import { type ItemState, itemStates } from "../../../src/core/item.js";
import { credits, noCredits } from "../../../src/core/money.js";
import { duePolls, isDue, next, slotsReserved, type View } from "../../../src/core/next/next.js";
import type { DurationEstimate } from "../../../src/core/pace/pace.js";
import type { OpenTask } from "../../../src/core/pace/poll.js";
import type { Quota } from "../../../src/core/quota/quota.js";

const now = Date.UTC(2026, 0, 1);

function quota(
  minuteUsed: number,
  dayUsed = minuteUsed,
  limits: [number | null, number | null] = [60, 10_000],
): Quota {
  const window = (limit: number | null, used: number, length: number) => ({
    limit,
    used,
    nextFreeAt: limit !== null && used >= limit ? now + length : now,
    nextReleaseAt: used > 0 ? now + length : null,
  });
  return {
    minute: window(limits[0], minuteUsed, 30_000),
    day: window(limits[1], dayUsed, 3_600_000),
    releases: [],
    pacing: { spacingMs: 0, nextAt: 0 },
    owedElsewhere: 0,
    blockedUntil: null,
  };
}

function view(change: Partial<View> & { state?: Partial<Record<ItemState, number>> } = {}): View {
  const { state, ...rest } = change;
  return {
    now,
    planned: [],
    waiting: [],
    inOrder: false,
    pace: () => certainly(10_000),
    profile: null,
    tasks: [],
    ready: [],
    expired: 0,
    parked: 0,
    renewals: [],
    awaitsOverdue: false,
    awaitsSettling: false,
    counts: {
      ...(Object.fromEntries(itemStates.map((name) => [name, 0])) as Record<ItemState, number>),
      ...state,
    },
    busy: new Set(),
    quota: quota(0),
    holdsBack: false,
    free: { submit: 2, poll: 8, download: 4 },
    stops: [],
    committed: noCredits,
    cap: null,
    ...rest,
  };
}

/** A model that always takes about as long. */
const certainly = (ms: number): DurationEstimate => ({ mean: Math.log(ms), spread: 0.1, finished: 30 });

const planned = (...ids: number[]) =>
  ids.map((id) => ({ id, price: credits(4), nextAt: 0, group: "a", priority: 0, position: id }));
const task = (id: number, change: Partial<OpenTask> = {}): OpenTask => ({
  id,
  group: "a",
  kind: "processing",
  since: now - 60_000,
  seenAt: null,
  nextAt: 0,
  ...change,
});
const ready = (...ids: number[]) => ids.map((id) => ({ id, nextAt: 0, fetchBy: now + 60_000 }));
const due = (...ids: number[]) => ids.map((id) => task(id));

describe("what goes first", () => {
  test("downloads need no quota and go ahead of everything", () => {
    const decision = next(
      view({ ready: ready(1, 2), planned: planned(3), quota: quota(60), state: { ready: 2, planned: 1 } }),
    );
    expect(decision.steps).toEqual([
      { do: "download", item: 1 },
      { do: "download", item: 2 },
    ]);
  });

  test("a due poll goes before a submit when slots are few", () => {
    const decision = next(
      view({ tasks: due(1), planned: planned(2, 3), quota: quota(58), state: { processing: 1, planned: 2 } }),
    );
    expect(decision.steps).toEqual([
      { do: "poll", item: 1 },
      { do: "submit", item: 2 },
    ]);
  });

  test("with slots to spare a task is polled early, unless others wait behind it: then when it is sure to be done", () => {
    const many = Array.from({ length: 9 }, (_, id) =>
      task(id, { since: now - 11_000, turn: { isLast: false } }),
    );
    const last = many.map((one) => ({ ...one, turn: { isLast: true } }));
    const polled = (tasks: OpenTask[], finished = 30) =>
      duePolls(
        view({ tasks, pace: () => ({ ...certainly(10_000), finished }), quota: quota(0, 0, [null, null]) }),
      ).due;
    expect(polled(last)).toHaveLength(9);
    expect(polled(many)).toEqual([]);
    expect(polled(many.map((one) => ({ ...one, since: now - 12_000 })))).toHaveLength(9);
    // The first results show how long they take.
    expect(polled(many, 2)).toHaveLength(9);
  });

  test("no more submits than lanes, no more steps than free hands", () => {
    const decision = next(
      view({
        planned: planned(1, 2, 3, 4),
        tasks: due(5, 6),
        ready: ready(7, 8),
        free: { submit: 2, poll: 1, download: 1 },
        state: { planned: 4, processing: 2, ready: 2 },
      }),
    );
    expect(decision.steps.map((step) => `${step.do} ${step.item}`)).toEqual([
      "download 7",
      "poll 5",
      "submit 1",
      "submit 2",
    ]);
  });

  test("an item that a step works on is left alone", () => {
    expect(next(view({ planned: planned(1), busy: new Set([1]), state: { planned: 1 } })).steps).toEqual([]);
  });

  test("P15: the output whose address ends first is fetched first, and one that is over when no other is left", () => {
    const fetchBy = [now + 900, now - 1, now + 300, now + 600, now - 5].map((by, id) => ({
      id,
      nextAt: 0,
      fetchBy: by,
    }));
    const fetched = (download: number) =>
      next(view({ ready: fetchBy, free: { submit: 0, poll: 0, download }, state: { ready: 5 } })).steps.map(
        ({ item }) => item,
      );
    expect(fetched(2)).toEqual([2, 3]);
    expect(fetched(5)).toEqual([2, 3, 0, 4, 1]);
  });

  test("P15: with 50 outputs to fetch nothing more is bought, and with 49 it is", () => {
    const submits = (ready: number) => {
      const steps = next(view({ planned: planned(1), state: { planned: 1, ready } })).steps;
      return steps.filter((step) => step.do === "submit").length;
    };
    expect([submits(50), submits(49)]).toEqual([0, 1]);
  });

  test("what is not due yet wakes the run when it is", () => {
    const decision = next(
      view({ tasks: [task(1, { kind: "overdue", nextAt: now + 700 })], state: { processing: 1 } }),
    );
    expect(decision).toMatchObject({ steps: [], wakeAt: now + 700, done: false, shortage: null });
  });
});

describe("what is worth a request", () => {
  const paces: Record<string, DurationEstimate> = { quick: certainly(8_000), slow: certainly(90_000) };
  const pace = (group: string) => paces[group] ?? certainly(10_000);
  const full = { waiting: [{ group: "slow", items: 200 }] };

  test("the longest generations are submitted first, but never before a higher priority", () => {
    const list = planned(1, 2, 3).map((item, index) => ({
      ...item,
      group: ["quick", "slow", "quick"][index] ?? "",
      priority: index === 2 ? 1 : 0,
    }));
    const submits = (change: Partial<View>) =>
      next(view({ planned: list, pace, free: { submit: 3, poll: 8, download: 4 }, ...change })).steps.map(
        ({ item }) => item,
      );
    expect(submits({})).toEqual([3, 2, 1]);
    expect(submits({ inOrder: true })).toEqual([3, 1, 2]);
  });

  test("with free slots a task is polled early, and under pressure when a result is nearly certain", () => {
    const tasks = [task(1, { group: "slow", since: now - 88_000 })];
    const look = (waiting: View["waiting"]) =>
      next(view({ tasks, waiting, pace, quota: quota(20, 20, [30, 1_000]), state: { processing: 1 } }));
    expect(look([]).steps).toEqual([{ do: "poll", item: 1 }]);
    const later = look(full.waiting);
    expect(later.steps).toEqual([]);
    expect(later.wakeAt).toBeGreaterThan(now + 15_000);
  });

  test("the last slot is kept for a poll that is due in a moment, and not for one that is due later", () => {
    const steps = (since: number) =>
      next(
        view({
          pace,
          planned: planned(2),
          waiting: full.waiting,
          tasks: [task(1, { group: "quick", since })],
          quota: quota(29, 29, [30, 1_000]),
          state: { processing: 1, planned: 200 },
        }),
      ).steps;
    expect(steps(now - 8_000)).toEqual([]);
    const slow = task(1, { group: "slow", since: now });
    const later = view({
      pace,
      planned: planned(2),
      waiting: full.waiting,
      tasks: [slow],
      quota: quota(29, 29, [30, 1_000]),
      state: { processing: 1, planned: 200 },
    });
    expect(next(later).steps).toEqual([{ do: "submit", item: 2 }]);
    expect(
      next({ ...later, tasks: [task(1, { group: "quick", since: now - 8_000 })], profile: "frugal" }).steps,
    ).toEqual([{ do: "submit", item: 2 }]);
  });

  test("an expired address goes before all other polls", () => {
    const tasks = [task(1), task(2, { kind: "expired" })];
    const decision = next(view({ tasks, quota: quota(59), state: { processing: 1, ready: 1 }, expired: 1 }));
    expect(decision.steps).toEqual([{ do: "poll", item: 2 }]);
  });

  test("of an unknown model, the oldest task is polled early", () => {
    const unknown: DurationEstimate = { mean: Math.log(60_000), spread: 0.8, finished: 0 };
    const tasks = [task(1, { since: now - 75_000 }), task(2, { since: now - 74_000 })];
    const unseen = view({
      tasks,
      waiting: full.waiting,
      quota: quota(10, 10, [30, 1_000]),
      pace: () => unknown,
      state: { processing: 2 },
    });
    expect(next(unseen).steps).toEqual([{ do: "poll", item: 1 }]);
    expect(next({ ...unseen, pace: () => ({ ...unknown, finished: 3 }) }).steps).toEqual([]);
  });

  test("a run that only waits for an unknown model polls it soon, and then at intervals that grow by half", () => {
    const unknown: DurationEstimate = { mean: Math.log(120_000), spread: 0.9, finished: 0 };
    const tasks = [task(1, { since: now - 6_000, seenAt: now - 2_500 }), task(2, { since: now - 4_000 })];
    const idling = view({ tasks, pace: () => unknown, state: { processing: 2 } });
    expect(next(idling).steps).toEqual([{ do: "poll", item: 1 }]);
    const seen = view({ ...idling, tasks: [task(1, { since: now - 6_000, seenAt: now - 1_500 })] });
    expect(next(seen)).toMatchObject({ steps: [], wakeAt: now + 750 });
    expect(next({ ...idling, pace: () => ({ ...unknown, finished: 1 }) }).steps).toEqual([]);
  });

  test("an overdue task waits eight times as long while every place is wanted, an hour longer at most", () => {
    const asked = (waiting: View["waiting"], seenAt = now - 60_000) => {
      const overdue = task(1, { kind: "overdue", since: now - 800_000, seenAt, nextAt: now });
      return next(
        view({
          tasks: [overdue],
          waiting,
          pace,
          quota: quota(20, 20, [30, 1_000]),
          state: { overdue: 1, planned: waiting.length * 200 },
        }),
      );
    };
    expect(asked([]).steps).toEqual([{ do: "poll", item: 1 }]);
    expect(asked(full.waiting)).toMatchObject({ steps: [], wakeAt: now + 7 * 60_000 });
    expect(asked(full.waiting, now - 30 * 60_000)).toMatchObject({ steps: [], wakeAt: now + 60 * 60_000 });
  });

  test("P12: what other workspaces owe is left to them", () => {
    const tight = { ...quota(0, 990, [30, 1_000]), owedElsewhere: 9 };
    expect(next(view({ planned: planned(1), quota: tight, state: { planned: 1 } }))).toMatchObject({
      steps: [],
      shortage: { kind: "reserve" },
    });
  });

  test("P10: a pacing that keeps requests apart lets one go at a time", () => {
    const paced = { ...quota(0), pacing: { spacingMs: 2_143, nextAt: now } };
    const steps = (at: number) =>
      next(
        view({
          planned: planned(1, 2),
          quota: { ...paced, pacing: { spacingMs: 2_143, nextAt: at } },
          state: { planned: 2 },
        }),
      );
    expect(steps(now).steps).toHaveLength(1);
    expect(steps(now + 500)).toMatchObject({
      steps: [],
      wakeAt: now + 500,
      shortage: { kind: "pacing", until: now + 500 },
    });
  });

  describe("P10: near the end, with few places at a time,", () => {
    const end = (change: Parameters<typeof view>[0]) =>
      next(
        view({
          planned: planned(1, 2),
          waiting: [{ group: "a", items: 2 }],
          tasks: due(3),
          quota: { ...quota(0), pacing: { spacingMs: 1_035, nextAt: 0 } },
          state: { planned: 2, processing: 1 },
          ...change,
        }),
      ).steps;

    test("a submit goes before a due poll", () => {
      expect(end({})).toEqual([{ do: "submit", item: 1 }]);
    });

    test("a poll goes while the lanes are busy", () => {
      expect(end({ free: { submit: 0, poll: 8, download: 4 } })).toEqual([{ do: "poll", item: 3 }]);
    });

    test("what is left of the minute is kept for submits that wait for a lane", () => {
      const few = (used: number) => ({ ...quota(used), releases: Array(10).fill(now + 5_000) });
      const steps = (used: number) => end({ quota: few(used), free: { submit: 0, poll: 8, download: 4 } });
      expect(steps(58)).toEqual([]);
      expect(steps(57)).toEqual([{ do: "poll", item: 3 }]);
    });

    test("submits that wait for settling leave the slot to the poll", () => {
      expect(end({ holdsBack: true })).toEqual([{ do: "poll", item: 3 }]);
    });

    test("P12: submits that the day has no requests for leave the slot to the poll", () => {
      const short = { ...quota(0, 94, [60, 100]), pacing: { spacingMs: 1_035, nextAt: 0 } };
      const tasks = due(3, 4, 5, 6, 7);
      const one = { planned: planned(1), waiting: [{ group: "a", items: 1 }] };
      const steps = end({ ...one, tasks, quota: short, state: { planned: 1, processing: 5 } });
      expect(steps).toEqual([{ do: "poll", item: 3 }]);
    });
  });
});

test("P20: what was put off before the clock was put back is due", () => {
  const tasks = [task(1, { kind: "overdue", nextAt: now + 10 * 365 * 86_400_000 })];
  expect(next(view({ tasks, state: { processing: 1 } })).steps).toEqual([{ do: "poll", item: 1 }]);
  // What is put off for a minute at most shows sooner that it was.
  const nextAt = now + 20 * 60_000;
  const items = {
    planned: planned(1).map((item) => ({ ...item, nextAt })),
    tasks: [task(2, { nextAt })],
    ready: ready(3).map((item) => ({ ...item, nextAt })),
  };
  const { steps } = next(view({ ...items, state: { planned: 1, processing: 1, ready: 1 } }));
  expect(steps.map(({ item }) => item).toSorted()).toEqual([1, 2, 3]);
});

describe("quota", () => {
  test("P9: with the minute full nothing is sent, and the run wakes when a place is free", () => {
    const decision = next(view({ planned: planned(1), quota: quota(60), state: { planned: 1 } }));
    expect(decision).toMatchObject({
      steps: [],
      wakeAt: now + 30_000,
      shortage: { kind: "minute", until: now + 30_000 },
    });
  });

  test("P11: while the service asked for silence nothing is sent", () => {
    const silent = { ...quota(0), blockedUntil: now + 9_000 };
    const decision = next(
      view({ planned: planned(1), tasks: due(2), quota: silent, state: { planned: 1, processing: 1 } }),
    );
    expect(decision).toMatchObject({
      steps: [],
      wakeAt: now + 9_000,
      shortage: { kind: "service", until: now + 9_000 },
    });
  });

  test("a step that becomes due before a slot is free does not wake the run", () => {
    const soon = [task(2, { kind: "overdue", nextAt: now + 2_000 })];
    const silent = { ...quota(0), blockedUntil: now + 9_000 };
    const state = { overdue: 1, planned: 2 };
    expect(next(view({ tasks: soon, quota: silent, state })).wakeAt).toBe(now + 9_000);
    const last = { ...quota(59), releases: [now + 5_000, now + 7_000] };
    const far = [task(2, { kind: "overdue", nextAt: now + 20_000 })];
    const decision = next(view({ planned: planned(1, 3), tasks: far, quota: last, state }));
    expect(decision).toMatchObject({ steps: [{ do: "submit", item: 1 }], wakeAt: now + 5_000 });
    const paced = { ...quota(0), pacing: { spacingMs: 3_000, nextAt: now - 1 } };
    expect(next(view({ planned: planned(1, 3), tasks: far, quota: paced, state })).wakeAt).toBe(now + 3_000);
    const unproven = { ...quota(0), pacing: { spacingMs: 0, nextAt: 0, atOnce: 1 } };
    expect(next(view({ planned: planned(1, 3), tasks: far, quota: unproven, state })).wakeAt).toBe(
      now + 2_000,
    );
    const day = next(view({ tasks: due(4, 5), quota: quota(0, 999, [30, 1_000]), state }));
    expect(day).toMatchObject({ steps: [{ do: "poll", item: 4 }], wakeAt: now + 3_600_000 });
  });

  test("a place that comes free wakes the run only where it could be used", () => {
    const later = (used: number) => Array<number>(used - 1).fill(now + 50_000);
    const released = (used: number) => ({ ...quota(used), releases: [now + 3_000, ...later(used)] });
    const far = Array.from({ length: 5 }, (_, index) => task(2 + index, { since: now }));
    const state = { processing: 5 };
    const wakeAt = (change: Partial<View>) => next(view({ tasks: far, state, ...change })).wakeAt ?? 0;
    expect(wakeAt({ quota: released(10) })).toBeGreaterThan(now + 3_000);
    expect(wakeAt({ quota: released(57) })).toBe(now + 3_000);
    const lanes = { planned: planned(1), free: { submit: 0, poll: 8, download: 4 } };
    expect(wakeAt({ ...lanes, quota: released(10) })).toBe(now + 3_000);
  });

  test("P12: a submit leaves one request of the day for every open task", () => {
    const state = { planned: 3, processing: 4, overdue: 1 };
    const free = { submit: 3, poll: 8, download: 4 };
    const later = [task(9, { kind: "overdue", nextAt: now + 1_000 })];
    const submits = (left: number) =>
      next(
        view({
          planned: planned(1, 2, 3),
          tasks: later,
          quota: quota(0, 1_000 - left, [30, 1_000]),
          state,
          free,
        }),
      ).steps.length;
    // One more is kept for a look that finds nothing.
    expect([5, 7, 8, 9, 10, 12].map(submits)).toEqual([0, 0, 1, 1, 2, 3]);
  });

  test("P12: a run waits if the day has too few requests for a submit and its poll", () => {
    const decision = next(
      view({ planned: planned(1), quota: quota(0, 999, [30, 1_000]), state: { planned: 1 } }),
    );
    expect(decision).toMatchObject({
      steps: [],
      wakeAt: now + 3_600_000,
      shortage: { kind: "reserve" },
      done: false,
    });
  });

  test("an unlimited plan is bounded by lanes alone", () => {
    const decision = next(
      view({
        planned: planned(...Array(20).keys()),
        quota: quota(500, 500, [null, null]),
        free: { submit: 16, poll: 8, download: 4 },
        state: { planned: 20 },
      }),
    );
    expect(decision.steps).toHaveLength(16);
  });
});

describe("the cap", () => {
  test("P7: nothing is submitted that could go over the cap", () => {
    const decision = next(
      view({ planned: planned(1, 2), cap: credits(11), committed: credits(4), state: { planned: 2 } }),
    );
    expect(decision.steps).toEqual([{ do: "submit", item: 1 }]);
    // What fits is still to be sent, so nothing is final yet.
    expect(decision.capped).toBe(false);
    const full = next(
      view({ planned: planned(1, 2), cap: credits(11), committed: credits(8), state: { planned: 2 } }),
    );
    expect(full).toMatchObject({ steps: [], capped: true });
  });

  test("P7: a model at its own cap is left out and told, and other models go on", () => {
    const all = ["film", "film", "still"].map((model, index) => ({
      id: index + 1,
      price: credits(4),
      nextAt: 0,
      group: JSON.stringify([model, []]),
      priority: 0,
      position: index,
    }));
    const decided = (room: number) =>
      next(view({ planned: all, modelBudgets: new Map([["film", credits(room)]]), state: { planned: 3 } }));
    expect(decided(4).steps.map(({ item }) => item)).toEqual([1, 3]);
    expect(decided(4).cappedModels).toEqual([]);
    expect(decided(3).steps.map(({ item }) => item)).toEqual([3]);
    expect(decided(3).cappedModels).toEqual(["film"]);
  });

  test("P7: a cap that is just enough is used to the last credit", () => {
    const decision = next(view({ planned: planned(1, 2), cap: credits(8), state: { planned: 2 } }));
    expect(decision.steps).toHaveLength(2);
    expect(decision.capped).toBe(false);
  });
});

describe("the end", () => {
  test("a run is done when nothing is planned, at the service or to be fetched", () => {
    expect(next(view({ state: { archived: 3, failed: 1, held: 1, overdue: 1, unknown: 1 } })).done).toBe(
      true,
    );
    for (const state of ["planned", "processing", "ready"] as const)
      expect(next(view({ state: { [state]: 1 } })).done).toBe(false);
  });

  test("items of a parked model do not keep the run open", () => {
    expect(next(view({ state: { planned: 3 }, parked: 3 })).done).toBe(true);
    expect(next(view({ state: { planned: 3 }, parked: 2 })).done).toBe(false);
  });

  test("overdue tasks keep the run open only when they are waited for", () => {
    const tasks = [task(1, { kind: "overdue", nextAt: now + 60_000 })];
    expect(next(view({ tasks, state: { overdue: 1 } })).done).toBe(true);
    expect(next(view({ tasks, state: { overdue: 1 }, awaitsOverdue: true }))).toMatchObject({
      done: false,
      wakeAt: now + 60_000,
    });
  });

  test("out of credits, what is at the service is still collected", () => {
    const stops = [{ kind: "credits" as const, message: "" }];
    const decision = next(
      view({ stops, planned: planned(1), tasks: due(2), state: { planned: 1, processing: 1 } }),
    );
    expect(decision.steps).toEqual([{ do: "poll", item: 2 }]);
    expect(next(view({ stops, planned: planned(1), state: { planned: 1 } })).done).toBe(true);
  });

  test("with the key refused, downloads finish and nothing is asked", () => {
    const stops = [{ kind: "key" as const, message: "" }];
    const decision = next(
      view({ stops, tasks: due(1), ready: ready(2), state: { processing: 1, ready: 2 }, expired: 1 }),
    );
    expect(decision.steps).toEqual([{ do: "download", item: 2 }]);
    expect(next(view({ stops, state: { processing: 1, ready: 1 }, expired: 1 })).done).toBe(true);
  });
});

describe("a parent whose URLs have expired", () => {
  const renewals = [{ id: 9, nextAt: 0 }];

  test("is polled, and keeps the run open", () => {
    const { steps, done } = next(view({ renewals }));
    expect(steps).toEqual([{ do: "poll", item: 9 }]);
    expect(done).toBe(false);
    expect(next(view({ renewals: [{ id: 9, nextAt: now + 5_000 }] }))).toMatchObject({
      steps: [],
      done: false,
      wakeAt: now + 5_000,
    });
  });

  test("waits until what may be submitted has a lane, because a URL is only good for a while", () => {
    const { steps } = next(view({ renewals, planned: planned(1, 2, 3), state: { planned: 3 } }));
    expect(steps.map(({ item }) => item)).toEqual([1, 2]);
  });

  test("is not polled when nothing more may be submitted, nor beside a download of its own", () => {
    const stops = [{ kind: "cap", message: "" }] as const;
    expect(next(view({ renewals, stops }))).toMatchObject({ steps: [], done: true });
    const ready = [{ id: 9, nextAt: 0, fetchBy: 0 }];
    const { steps } = next(view({ renewals, ready, state: { ready: 1 } }));
    expect(steps).toEqual([{ do: "download", item: 9 }]);
  });

  test("is polled only while the day has requests for it and for the tasks at the service", () => {
    const day = { ...quota(0), day: { ...quota(0).day, limit: 10, used: 9, nextReleaseAt: now + 60_000 } };
    const { steps, shortage, done } = next(view({ renewals, quota: day }));
    expect({ steps, shortage, done }).toEqual({
      steps: [],
      shortage: { kind: "reserve", until: now + 60_000 },
      done: false,
    });
  });
});

describe("tasks that are polled", () => {
  const unknown: DurationEstimate = { mean: Math.log(60_000), spread: 0.8, finished: 0 };
  const steps = (change: Parameters<typeof view>[0]) => next(view(change)).steps.map(({ item }) => item);

  test("are none while a step works on them, and none after a stop", () => {
    expect(steps({ tasks: due(1, 2), busy: new Set([1]), state: { processing: 2 } })).toEqual([2]);
    const stops = [{ kind: "key", message: "" }] as const;
    expect(duePolls(view({ tasks: due(1), stops }))).toEqual({
      due: [],
      later: [],
      holdMs: 0,
      isPlenty: true,
      isTail: false,
    });
  });

  test("are the most promising first, and the later ones in the order of their times", () => {
    const one = { free: { submit: 0, poll: 1, download: 4 }, state: { processing: 2 } };
    const tasks = [task(1, { since: now - 11_000 }), task(2, { since: now - 30_000 })];
    expect(steps({ ...one, tasks })).toEqual([2]);
    expect(steps({ ...one, tasks: tasks.toReversed() })).toEqual([2]);
    const overdue = [9_000, 3_000, 6_000].map((ms, id) => task(id, { kind: "overdue", nextAt: now + ms }));
    expect(duePolls(view({ tasks: overdue })).later.map((at) => at - now)).toEqual([3_000, 6_000, 9_000]);
  });

  test("are the oldest of each unknown model, wherever they are listed, and no overdue ones", () => {
    const scouted = (tasks: OpenTask[]) =>
      steps({
        tasks,
        waiting: [{ group: "a", items: 200 }],
        quota: quota(10, 10, [30, 1_000]),
        pace: () => unknown,
        state: { processing: 3 },
      });
    const [older, younger] = [task(1, { since: now - 75_000 }), task(2, { since: now - 74_000 })];
    expect(scouted([younger, older])).toEqual([1]);
    expect(scouted([older, younger])).toEqual([1]);
    expect(scouted([younger, { ...older, kind: "overdue", nextAt: now + 5_000 }])).toEqual([2]);
    expect(scouted([younger, { ...older, group: "b" }]).toSorted()).toEqual([1, 2]);
  });

  test("early in a run that only waits for them, but not while something is left to submit", () => {
    const waits = { tasks: [task(1, { since: now - 4_000 })], pace: () => unknown, state: { processing: 1 } };
    expect(steps(waits)).toEqual([1]);
    expect(steps({ ...waits, waiting: [{ group: "a", items: 1 }] })).toEqual([]);
    // What a cap keeps from being submitted is nothing to wait for.
    const stops = [{ kind: "cap", message: "" }] as const;
    expect(steps({ ...waits, waiting: [{ group: "a", items: 1 }], stops })).toEqual([1]);
  });

  test("overdue, as they are due where nobody has looked yet, even while slots are short", () => {
    const asked = (change: Partial<OpenTask>) =>
      next(
        view({
          tasks: [task(1, { kind: "overdue", since: now - 800_000, nextAt: now, ...change })],
          waiting: [{ group: "a", items: 200 }],
          quota: quota(20, 20, [30, 1_000]),
          state: { overdue: 1, planned: 200 },
        }),
      ).steps;
    expect(asked({ seenAt: null })).toHaveLength(1);
    // Seen after it was due: the clock was set.
    expect(asked({ seenAt: now + 60_000 })).toHaveLength(1);
    expect(asked({ seenAt: now - 60_000 })).toHaveLength(0);
  });

  test("are due from their time on, and if it is further ahead than any poll is put off", () => {
    const at = (nextAt: number) => isDue({ nextAt: now + nextAt }, now, 5_000);
    expect([at(0), at(1), at(5_000), at(5_001)]).toEqual([true, false, false, true]);
  });
});

describe("slots are kept for polls of the next seconds", () => {
  const kept = (times: number[], change: { free?: number; unserved?: number; quota?: Quota } = {}) =>
    slotsReserved(
      view({ quota: change.quota ?? quota(50) }),
      { due: [], later: times.map((ms) => now + ms), holdMs: 14_000, isPlenty: false, isTail: false },
      change.free ?? 10,
      change.unserved ?? 0,
    );

  test("one for each, up to the time that the profile looks ahead", () => {
    expect(kept([])).toBe(0);
    expect(kept([1_000, 2_000, 14_000])).toBe(3);
    expect(kept([1_000, 14_001])).toBe(1);
  });

  test("fewer where slots come free before they are due", () => {
    const releases = (...times: number[]) => ({ ...quota(50), releases: times.map((ms) => now + ms) });
    expect(kept([1_000, 3_000, 4_000], { quota: releases(2_000, 3_500) })).toBe(1);
    expect(kept([3_000], { quota: releases(2_000, 2_500) })).toBe(0);
  });

  test("beside one for each poll that is due and found none", () => {
    expect(kept([], { unserved: 2 })).toBe(2);
    expect(kept([1_000], { unserved: 2 })).toBe(3);
  });

  test("none on an unlimited plan", () => {
    const unlimited = quota(5, 5, [null, null]);
    expect(kept([1_000], { free: Number.POSITIVE_INFINITY, quota: unlimited })).toBe(0);
  });
});

describe("what a run waits for", () => {
  test("is said while something else is done, and nothing is idle then", () => {
    const full = { planned: planned(1), quota: quota(60), state: { planned: 1 } };
    const shortage = { kind: "minute", until: now + 30_000 };
    expect(next(view(full))).toMatchObject({ shortage, isIdle: true });
    expect(next(view({ ...full, busy: new Set([9]) }))).toMatchObject({ shortage, isIdle: false });
    const downloading = view({ ...full, ready: ready(2), state: { planned: 1, ready: 1 } });
    expect(next(downloading)).toMatchObject({ shortage, isIdle: false });
  });

  test("is the minute only if something is due before it has a slot", () => {
    const later = (ms: number) =>
      next(
        view({
          planned: planned(1).map((item) => ({ ...item, nextAt: now + ms })),
          quota: quota(60),
          state: { planned: 1 },
        }),
      );
    expect(later(29_999)).toMatchObject({
      shortage: { kind: "minute", until: now + 30_000 },
      wakeAt: now + 30_000,
    });
    expect(later(30_000)).toMatchObject({ shortage: null, wakeAt: now + 30_000 });
    expect(later(31_000)).toMatchObject({ shortage: null, wakeAt: now + 31_000 });
  });

  test("is the day only if a submit is due that it has no request for", () => {
    const short = quota(0, 999, [30, 1_000]);
    const poll = [task(1, { kind: "overdue", nextAt: now + 1_000 })];
    expect(next(view({ tasks: poll, quota: short, state: { processing: 1 } })).shortage).toBeNull();
    const submits = view({ planned: planned(1), quota: short, state: { planned: 1 } });
    expect(next(submits).shortage?.kind).toBe("reserve");
    // Lanes are what is missing here, or somebody who polls.
    const lanes = { submit: 0, poll: 0, download: 4 };
    const enough = quota(0, 998, [30, 1_000]);
    expect(next(view({ planned: planned(1), free: lanes, quota: enough })).shortage).toBeNull();
    const busy = { tasks: due(1), free: lanes, quota: short, state: { processing: 1 } };
    expect(next(view(busy)).shortage).toBeNull();
    const unknown = { ...short, day: { ...short.day, nextReleaseAt: null } };
    expect(next(view({ planned: planned(1), quota: unknown, state: { planned: 1 } })).wakeAt).toBe(
      now + 60_000,
    );
  });

  test("is nothing where nothing is at the service", () => {
    expect(next(view({ state: { ready: 1 }, expired: 1 })).shortage).toBeNull();
  });
});

describe("a run that has nothing to do wakes", () => {
  test("when the first of its downloads or submits is due", () => {
    const at = (...times: number[]) => times.map((ms, id) => ({ id, nextAt: now + ms, fetchBy: 0 }));
    expect(next(view({ ready: at(9_000, 4_000), state: { ready: 2 } })).wakeAt).toBe(now + 4_000);
    const submits = [8_000, 3_000].map((ms, id) => ({ ...planned(id)[0], nextAt: now + ms }));
    expect(next(view({ planned: submits as View["planned"], state: { planned: 2 } })).wakeAt).toBe(
      now + 3_000,
    );
  });

  test("never by itself where only the end of a step can change anything", () => {
    expect(next(view({ busy: new Set([1]), state: { processing: 1 } })).wakeAt).toBeNull();
    expect(next(view({})).wakeAt).toBeNull();
  });

  test("not for downloads or submits that a stop forbids", () => {
    const paused = [{ kind: "paused", message: "" }] as const;
    const later = [{ id: 1, nextAt: now + 4_000, fetchBy: 0 }];
    expect(next(view({ ready: later, stops: paused, state: { ready: 1 } }))).toMatchObject({
      steps: [],
      wakeAt: null,
      done: true,
    });
    expect(next(view({ ready: ready(1), stops: paused, state: { ready: 1 } })).steps).toEqual([]);
    const cap = [{ kind: "cap", message: "" }] as const;
    const submits = planned(1).map((item) => ({ ...item, nextAt: now + 4_000 }));
    expect(next(view({ planned: submits, stops: cap, state: { planned: 1 } })).wakeAt).toBeNull();
  });
});

describe("a run is not done", () => {
  test("while it starts a step, or one is in progress", () => {
    expect(next(view({ planned: planned(1) }))).toMatchObject({ steps: [{ item: 1 }], done: false });
    expect(next(view({ busy: new Set([1]) })).done).toBe(false);
  });

  test("while unanswered requests are being settled, if it is to wait for that and may still ask", () => {
    expect(next(view({ awaitsSettling: true })).done).toBe(false);
    const stops = [{ kind: "key", message: "" }] as const;
    expect(next(view({ awaitsSettling: true, stops })).done).toBe(true);
  });

  test("while overdue tasks are waited for, if there are any and they may be polled", () => {
    expect(next(view({ awaitsOverdue: true })).done).toBe(true);
    const stops = [{ kind: "key", message: "" }] as const;
    expect(next(view({ awaitsOverdue: true, state: { overdue: 1 }, stops })).done).toBe(true);
  });

  test("while a ready item waits for the poll that gets it a new address", () => {
    expect(next(view({ state: { ready: 1 }, expired: 1 })).done).toBe(false);
    const stops = [{ kind: "paused", message: "" }] as const;
    expect(next(view({ state: { ready: 2 }, expired: 1, stops })).done).toBe(true);
  });
});

test("items of one priority and length go in the manifest's order, however they are listed", () => {
  const list = [3, 1, 2].flatMap((id) => planned(id));
  expect(next(view({ planned: list, free: { submit: 3, poll: 8, download: 4 } })).steps).toEqual(
    [1, 2, 3].map((item) => ({ do: "submit", item })),
  );
});

test("an address that ends this very moment counts as over", () => {
  const list = [now, now + 1].map((fetchBy, id) => ({ id, nextAt: 0, fetchBy }));
  const { steps } = next(view({ ready: list, state: { ready: 2 } }));
  expect(steps.map(({ item }) => item)).toEqual([1, 0]);
});
