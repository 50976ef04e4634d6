import { beforeEach, describe, expect, test } from "vitest";
import type { DiskRefusal } from "../../../src/archive/disk/space.js";
import { ServiceClock } from "../../../src/client/service-clock.js";
import { DiskTrouble, ReceiptsTrouble } from "../../../src/run/gate/disk-trouble.js";
import { ManualClock } from "../../manual-clock.js";
import { silentLog } from "../harness.js";

const full: DiskRefusal = { kind: "disk", code: "ENOSPC", reason: "full" };
const denied: DiskRefusal = { kind: "disk", code: "EACCES", reason: "denied" };

const waits =
  "the disk refuses files: full. Waiting; nothing is bought. Free some space and the run continues.";

let clock: ManualClock;
let room: DiskRefusal | null;
let looks: string[];
let told: unknown[];
let trouble: DiskTrouble;

beforeEach(() => {
  clock = new ManualClock();
  room = null;
  looks = [];
  told = [];
  const refusal = async (folder: string) => {
    looks.push(folder);
    return room;
  };
  const log = { ...silentLog, warn: (_: object, message: string) => void told.push(message) };
  trouble = new DiskTrouble({ log, refusal }, new ServiceClock(clock), "/outputs/demo");
});

describe("the room of the archive's disk", () => {
  test("P17: is checked before the first paid request, and then at most once in 15 seconds", async () => {
    await trouble.check(false);
    expect(looks).toEqual([]);
    for (let turn = 0; turn < 5; turn++) await trouble.check(true);
    expect(looks).toEqual(["/outputs/demo"]);
    clock.advance(14_999);
    await trouble.check(true);
    expect(looks.length).toBe(1);
    clock.advance(1);
    await trouble.check(true);
    expect(looks.length).toBe(2);
    expect(trouble.wakeAt).toBeNull();
  });

  test("that takes small files and refuses large ones is reported once", () => {
    for (let file = 0; file < 10; file++) {
      trouble.refused(full);
      trouble.over();
    }
    expect(told).toEqual([waits]);
  });

  test("that is full again after ten minutes is reported again", () => {
    trouble.refused(full);
    trouble.over();
    clock.advance(10 * 60_000 - 1);
    trouble.refused(full);
    trouble.over();
    expect(told).toEqual([waits]);
    clock.advance(1);
    trouble.refused(full);
    expect(told).toEqual([waits, waits]);
  });

  test("P17: is told with who refuses what, and what to do", () => {
    trouble.refused(denied);
    trouble.over();
    trouble.refused({ kind: "disk", code: "BUCKET", reason: "no such bucket" });
    expect(told).toEqual([
      "the disk refuses files: denied. Waiting; nothing is bought. The run continues when it accepts files.",
      "the bucket refuses files: no such bucket. Waiting; nothing is bought. The run continues when it accepts files.",
    ]);
  });

  test("P17: that is gone is reported once, and checked until it is back, even if nothing is left to buy", async () => {
    room = full;
    await trouble.check(true);
    expect([trouble.reason, trouble.wakeAt]).toEqual(["full", clock.now() + 15_000]);
    clock.advance(15_000);
    await trouble.check(false);
    trouble.refused(full);
    expect(told).toEqual([waits]);
    trouble.over();
    expect(trouble.reason).toBe("full");
    room = null;
    clock.advance(15_000);
    await trouble.check(false);
    expect([trouble.reason, trouble.wakeAt, looks.length]).toEqual([null, null, 3]);
  });

  test("P17: is no proof that a save is not refused", async () => {
    trouble.refused(denied);
    await trouble.check(true);
    expect(trouble.reason).toBe("denied");
    trouble.over();
    expect(trouble.reason).toBeNull();
    trouble.refused(denied);
    expect(told.length).toBe(2);
  });
});

test("P17: while receipts cannot be written nothing is bought, except for a try every 15 seconds", () => {
  const log = { ...silentLog, warn: (_: object, message: string) => void told.push(message) };
  const receipts = new ReceiptsTrouble(log, new ServiceClock(clock));
  const state = () => [receipts.reason, receipts.against !== null, receipts.wakeAt];
  receipts.written(null);
  expect(state()).toEqual([null, false, null]);
  receipts.written(new Error("read-only"));
  const reason = "the receipts cannot be written (read-only)";
  expect(state()).toEqual([reason, true, clock.now() + 15_000]);
  clock.advance(15_000);
  expect([receipts.reason, receipts.against !== null]).toEqual([reason, false]);
  receipts.written(new Error("read-only"));
  expect(receipts.against).toEqual({
    kind: "receipts",
    text: "the receipts of paid requests cannot be written (nothing new is bought): read-only",
    until: clock.now() + 15_000,
  });
  expect(told).toEqual(["the receipts cannot be written; nothing is submitted until they can be"]);
  receipts.written(null);
  expect(state()).toEqual([null, false, null]);
});
