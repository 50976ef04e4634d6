import type { AlarmClock } from "../../src/clock.js";
import { dayMs } from "../../src/core/quota.js";
import { isByYears } from "./decade.js";
import type { Mutant } from "./mutants.js";

/** Runners that are broken where the clock is set. */
export const clockMutants: readonly Mutant[] = [
  {
    name: "measures what passes by the clock on the wall",
    matters: isByYears,
    make: () => ({ ports: (ports) => ({ ...ports, clock: byWall(ports.clock) }) }),
  },
  {
    name: "takes a lost request for a day old when its clock is put ahead",
    matters: (scenario) => isByYears(scenario) && scenario.keepCredits !== undefined,
    make: () => ({
      parts: ({ store, ...rest }, { clock }) => ({
        ...rest,
        store: { ...store, doubtful: async () => store.doubtful(clock.now() - dayMs) },
      }),
    }),
  },
];

function byWall(clock: AlarmClock): AlarmClock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.now(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    alarm: (at, ring) => clock.alarm(at, ring),
  };
}
