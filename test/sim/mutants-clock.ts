import { ServiceClock } from "../../src/client/service-clock.js";
import type { AlarmClock } from "../../src/clock.js";
import type { BalanceMark } from "../../src/core/ports/spend-log.js";
import { dayMs } from "../../src/core/quota/quota.js";
import { isByYears } from "./decade.js";
import type { Process } from "./machine.js";
import type { Mutant } from "./mutants.js";

/** Runners that are broken where the clock is set. */
export const clockMutants: readonly Mutant[] = [
  {
    name: "measures what passes by the clock on the wall",
    matters: isByYears,
    ports: (ports) => {
      const clock = onTheWall(ports.clock);
      const time: ServiceClock = Object.create(ports.service.time, {
        wait: { value: (ms: number) => new ServiceClock(clock).wait(ms) },
        stopwatch: { value: () => new ServiceClock(clock).stopwatch() },
      });
      return { clock, service: { ...ports.service, time } };
    },
  },
  {
    name: "takes a lost request for a day old when its clock is put ahead",
    matters: (scenario) => isByYears(scenario) && scenario.keepCredits !== undefined,
    accounts: ({ takenFrom }, process) => ({
      takenFrom: (id, mark) => takenFrom(id, byWall(process, mark)),
    }),
    spendLog: ({ intendWithin }, process) => ({
      intendWithin: ({ daily, kept }, intent) =>
        intendWithin({ daily, kept: kept && { ...kept, mark: byWall(process, kept.mark) } }, intent),
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

function byWall({ clock }: Process, mark: BalanceMark): BalanceMark {
  return { ...mark, dayBefore: clock.now() - dayMs };
}
