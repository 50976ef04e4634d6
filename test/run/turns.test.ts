import { expect, test } from "vitest";
import { announcedIn } from "../../src/api/announced.js";
import type { Me } from "../../src/api/records.js";
import { priceGroup } from "../../src/core/identity.js";
import type { OpenTask } from "../../src/core/pace/poll.js";
import { Turns } from "../../src/run/turns.js";
import { ManualClock } from "../manual-clock.js";

const groupOf = (model: string) => priceGroup({ model, params: {} });

/** The turns at a provider with `style` and `clip`, two at once, and the tasks of both in the order of their numbers. */
function turns() {
  const clock = new ManualClock();
  const told = [
    { at_once: 2, ahead_ms: 0, usual_ms: { style: 30_000, clip: null } },
    { at_once: 0, usual_ms: { odd: 1 } },
    { at_once: 1, usual_ms: {} },
    "odd",
  ];
  const { providers } = announcedIn({ service: { providers: told } } as unknown as Me);
  const made = new Turns(clock, () => providers);
  const start = clock.now() - 10;
  const task = (id: number, model = "style"): OpenTask => ({
    id,
    group: groupOf(model),
    kind: "processing",
    since: start + id,
    seenAt: null,
    nextAt: start,
  });
  const polled = (tasks: readonly OpenTask[]) =>
    made.worthPolling(tasks).map(({ id, since, turn }) => [id, since - start, turn?.isLast]);
  return { clock, made, task, polled };
}

test("the oldest tasks of a provider are worth a poll, as many as it does at once; others are as they were", () => {
  const { task, polled } = turns();
  const overdue = { ...task(0), kind: "overdue" } as const;
  const tasks = [task(4), task(3, "clip"), task(2), task(1), task(9, "other"), overdue];
  expect(polled(tasks)).toEqual([
    [9, 9, undefined],
    [0, 0, undefined],
    [1, 1, false],
    [2, 2, false],
  ]);
});

test("the next task begins when one ends, however late that is seen", () => {
  const { clock, made, task, polled } = turns();
  polled([task(1), task(2), task(3), task(4)]);
  clock.advance(45_000);
  made.ended(2, groupOf("style"), 16_000);
  expect(polled([task(1), task(3), task(4)])).toEqual([
    [1, 1, false],
    [3, 29_010, false],
  ]);
  made.ended(1, groupOf("style"), 15_000);
  expect(polled([task(3), task(4)])).toEqual([
    [3, 29_010, true],
    [4, 30_010, true],
  ]);
});

test("what a poll finds goes before what was expected: it waits behind jobs of others, or began later", () => {
  const { clock, made, task, polled } = turns();
  const tasks = [task(1), task(2), task(3)];
  polled(tasks);
  clock.advance(40_000);
  made.waits(1, 600_000);
  made.found(2, 5_000);
  expect(polled(tasks)).toEqual([
    [1, 640_010, false],
    [2, 35_010, false],
  ]);
  expect(
    made.leftMs(
      [{ model: "style", items: 4, pace: { mean: Math.log(30_000), spread: 0, finished: 9 } }],
      tasks,
    ),
  ).toBeCloseTo(60_000, 3);
});

test("a look from before a task began says nothing of its age", () => {
  const { clock, made, task } = turns();
  const seen = { ...task(1), seenAt: clock.now() + 10_000 };
  clock.advance(60_000);
  made.found(1, 20_000);
  expect(made.worthPolling([seen])).toMatchObject([{ seenAt: null, since: clock.now() - 20_000 }]);
});

test("a clock that is set back keeps nobody waiting", () => {
  const { clock, task, polled } = turns();
  clock.set(-86_400_000);
  expect(polled([task(1)])).toEqual([[1, -86_399_990, true]]);
});
