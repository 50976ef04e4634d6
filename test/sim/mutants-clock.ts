import { ServiceClock } from "../../src/client/service-clock.js";
import type { AlarmClock } from "../../src/clock.js";
import type { BalanceMark } from "../../src/core/ports/spend-log.js";
import { dayMs } from "../../src/core/quota/quota.js";
import { isByYears } from "./decade.js";
import type { Mutant } from "./mutants.js";

/** Runners that are broken where the clock is set. */
export const clockMutants: readonly Mutant[] = [
  {
    name: "measures what passes by the clock on the wall",
    matters: isByYears,
    make: () => ({
      ports: (ports) => {
        const clock = onTheWall(ports.clock);
        const time: ServiceClock = Object.create(ports.service.time, {
          wait: { value: (ms: number) => new ServiceClock(clock).wait(ms) },
          stopwatch: { value: () => new ServiceClock(clock).stopwatch() },
        });
        return { ...ports, clock, service: { ...ports.service, time } };
      },
    }),
  },
  {
    name: "takes a lost request for a day old when its clock is put ahead",
    matters: (scenario) => isByYears(scenario) && scenario.keepCredits !== undefined,
    make: () => ({
      ports: (ports) => {
        const { accounts, spendLog, clock } = ports;
        const byWall = (mark: BalanceMark) => ({ ...mark, dayBefore: clock.now() - dayMs });
        return {
          ...ports,
          accounts: { ...accounts, takenFrom: (id, mark) => accounts.takenFrom(id, byWall(mark)) },
          spendLog: {
            ...spendLog,
            intendWithin: ({ daily, kept }, intent) =>
              spendLog.intendWithin({ daily, kept: kept && { ...kept, mark: byWall(kept.mark) } }, intent),
          },
        };
      },
    }),
  },
];

function onTheWall(clock: AlarmClock): AlarmClock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.now(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    alarm: (at, ring) => clock.alarm(at, ring),
  };
}
