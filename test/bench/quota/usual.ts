import PQueue from "p-queue";
import { type PlanName, planLimits } from "../../../src/api/plans.js";
import { nextSendAt } from "../../../src/core/quota/quota.js";
import { type BenchLedger, MemoryLedger } from "./ledger.js";
import { type Figures, figuresOf, type TimedService } from "./service.js";
import { VirtualTime } from "./virtual-time.js";

/** How people poll today: the interval in ms after so many looks. */
export interface Polling {
  intervalMs(looks: number): number;
  /** Items in flight at once. */
  inFlight: number;
  /** Whether the plan's limits are kept; without them it is as fast as polling can be. */
  isLimited: boolean;
}

const documented = (looks: number) => Math.min(10_000, 2_000 * 1.25 ** looks);

export const usualPolling = {
  "2→10 s, 10 in flight": { intervalMs: documented, inFlight: 10, isLimited: true },
  "2→10 s, no bound": { intervalMs: documented, inFlight: Number.POSITIVE_INFINITY, isLimited: true },
  "every 3 s, 10 in flight": { intervalMs: () => 3_000, inFlight: 10, isLimited: true },
  "every 0.5 s, 10 in flight": { intervalMs: () => 500, inFlight: 10, isLimited: true },
  "every 0.5 s without a quota": {
    intervalMs: () => 500,
    inFlight: Number.POSITIVE_INFINITY,
    isLimited: false,
  },
} as const satisfies Record<string, Polling>;

export type UsualPolling = keyof typeof usualPolling;

const start = Date.UTC(2026, 0, 1);

/** The loop that everybody writes: a p-queue of items, each submitted and then polled to its end; requests first come, first served. */
export async function usual(
  service: TimedService,
  plan: PlanName,
  polling: Polling,
  { untilMs, lanes = Number.POSITIVE_INFINITY }: { untilMs?: number; lanes?: number } = {},
): Promise<Figures> {
  const time = new VirtualTime(start);
  // POSTs in flight at once.
  const submits = new PQueue({ concurrency: lanes });
  const queue = new PQueue({ concurrency: polling.inFlight });
  // Where a day is not what is measured, its limit is left out: this polling would need several for one set.
  const perDay = untilMs === undefined ? null : planLimits[plan].perDay;
  const limits = polling.isLimited ? { ...planLimits[plan], perDay } : { perMinute: null, perDay: null };
  const request = requestsOf(service, time, new MemoryLedger(limits, () => time.now()));
  let lastSeen = start;
  for (const index of service.jobs.keys()) {
    void queue.add(async () => {
      await submits.add(() => request((at) => service.create(index, at)));
      for (let looks = 0; ; looks++) {
        await time.until(time.now() + polling.intervalMs(looks));
        const isDone = await request((at) => service.isDone(index, at));
        if (!isDone) continue;
        service.seen(index, time.now());
        lastSeen = time.now();
        return;
      }
    });
  }
  await time.run(start + (untilMs ?? Number.POSITIVE_INFINITY));
  return figuresOf(service, lastSeen - start);
}

/** Sends a request as soon as the ledger has a place and those before it are gone; resolves with its answer. */
function requestsOf(service: TimedService, time: VirtualTime, ledger: BenchLedger) {
  let turn: Promise<void> = Promise.resolve();
  return async <Result>(onArrival: (at: number) => Result): Promise<Result> => {
    const before = turn;
    let leave = () => {};
    turn = new Promise((resolve) => {
      leave = resolve;
    });
    await before;
    let { arrivesAt, answeredAt } = service.travel(time.now());
    while ((await ledger.reserve("task", answeredAt)) === null) {
      await time.until(nextSendAt(await ledger.quota(), time.now()));
      ({ arrivesAt, answeredAt } = service.travel(time.now()));
    }
    service.requests++;
    leave();
    const result = onArrival(arrivesAt);
    await time.until(answeredAt);
    return result;
  };
}
