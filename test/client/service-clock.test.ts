import { beforeEach, describe, expect, test } from "vitest";
import { ServiceClock, timed } from "../../src/client/service-clock.js";
import type { Reply } from "../../src/core/ports/send.js";
import { ManualClock } from "../manual-clock.js";

const minute = 60_000;
const years = 3_650 * 86_400_000;
let clock: ManualClock;
let time: ServiceClock;
let right: number;

beforeEach(() => {
  clock = new ManualClock();
  right = clock.now();
  time = new ServiceClock(clock);
});

const pass = (ms: number) => {
  clock.advance(ms);
  right += ms;
};
/** An answer comes at once. */
const told = (ms: number) => time.asking()(ms);
const at = (ms: number) => ({ earliest: ms, latest: ms });

test("before the service has told its time, this machine's clock is all there is", () => {
  clock.set(years);
  expect(time.now).toEqual(at(right + years));
});

test("a clock that the service agrees with to the minute is believed", () => {
  told(right - 59_000);
  pass(10 * minute);
  expect(time.now).toEqual(at(right));
});

describe.each([years, -years, 61_000, -61_000])("P20: a clock that is wrong by %d ms", (byMs) => {
  test("is corrected by the service's", () => {
    clock.set(byMs);
    told(right);
    pass(60 * minute);
    expect(time.now).toEqual(at(right));
  });

  test("and is put right leaves it open which is right, until the next answer", () => {
    clock.set(byMs);
    told(right);
    clock.set(-byMs);
    pass(minute);
    expect(time.now).toEqual({
      earliest: Math.min(right, right - byMs),
      latest: Math.max(right, right - byMs),
    });
    told(right);
    expect(time.now).toEqual(at(right));
  });
});

test("P20: an answer that was on its way for long leaves it open how much later it is", () => {
  clock.set(years);
  const tell = time.asking();
  const served = right;
  pass(18_000);
  tell(served);
  expect(time.now).toEqual({ earliest: served, latest: right });
  pass(minute);
  expect(time.now).toEqual({ earliest: right - 18_000, latest: right });
});

test("a believed clock may be slow by what the service says", () => {
  told(right + 30_000);
  expect(time.now).toEqual({ earliest: right, latest: right + 30_000 });
});

test("P20: a machine that has slept, or whose clock was set, is of both times until the next answer", () => {
  told(right);
  clock.set(8 * 60 * minute);
  expect(time.now).toEqual({ earliest: right, latest: right + 8 * 60 * minute });
  told(right + 8 * 60 * minute);
  expect(time.now).toEqual(at(right + 8 * 60 * minute));
});

test("P20: an answer that came while the machine slept does not set the clock: it may be hours old", () => {
  told(right);
  const tell = time.asking();
  clock.set(8 * 60 * minute);
  tell(right);
  expect(time.now).toEqual({ earliest: right, latest: right + 8 * 60 * minute });
});

test("P20: the first answer counts even if the clock was set while it was on its way: nothing else is known", () => {
  const tell = time.asking();
  clock.set(years);
  tell(right);
  expect(time.now).toEqual(at(right));
});

test("P20: after a believed clock was set, what it may be slow by still counts", () => {
  told(right + 30_000);
  clock.set(8 * 60 * minute);
  expect(time.now).toEqual({ earliest: right, latest: right + 8 * 60 * minute + 30_000 });
});

test("every answer with a date sets the service clock, refusals too", async () => {
  const replies: Reply[] = [
    { kind: "no_answer", reason: "timeout" },
    { kind: "answer", status: 200, headers: {}, body: "" },
    { kind: "answer", status: 503, headers: { date: new Date(right).toUTCString() }, body: "" },
  ];
  const send = timed(async () => replies.shift() as Reply, time);
  const ask = () => send({ endpoint: "me", method: "GET", path: "/", timeoutMs: 1 });
  clock.set(years);
  for (const expected of [right + years, right + years, right]) {
    await ask();
    expect(time.now).toEqual(at(expected));
  }
});

describe("P20: a task's age is taken", () => {
  test.each([
    ["from this machine's clock, which is exact", 9_700, 9_000, 9_700],
    ["from the service's, after this machine's was set ahead", 3_600_000, 9_000, 9_000],
    ["from the service's, after this machine's was set back", -3_600_000, 9_000, 9_000],
    ["as nothing, where the service's clock is a little behind itself", 3_600_000, -2_000, 0],
    [
      "from this machine's clock, where what the service tells cannot be an age",
      900_000,
      -3_600_000,
      900_000,
    ],
    ["from this machine's clock, where the service tells more", 9_700, 3_600_000, 9_700],
  ])("%s", (_, own, toldMs, age) => {
    const begun = { at: clock.now() - own, sentAt: clock.now() };
    expect(time.taskAge(begun, toldMs)).toBe(age);
  });

  test("from the time of sending by the service's clock, if the service states no age", () => {
    told(right);
    const begun = { at: clock.now(), sentAt: right };
    clock.set(years);
    pass(5 * minute);
    expect(time.taskAge(begun, null)).toBe(5 * minute);
  });
});

describe("P20: a wait", () => {
  test("is over when its time has passed, also while the machine sleeps", () => {
    const [short, long] = [time.wait(minute), time.wait(60 * minute)];
    pass(minute - 1);
    expect(short.isOver).toBe(false);
    pass(1);
    expect(short.isOver).toBe(true);
    clock.set(8 * 60 * minute);
    expect(long.isOver).toBe(true);
  });

  test("takes no longer because the wall clock is set back", () => {
    const wait = time.wait(minute);
    clock.set(-years);
    pass(minute);
    expect(wait.isOver).toBe(true);
  });
});
