import type { Mutant } from "./mutants.js";
import type { Substitution } from "./runner.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where a run is cancelled. */
export const cancelMutants: readonly Mutant[] = [
  {
    name: "goes on submitting after a cancel",
    matters: isCancelled,
    make: () => ({
      parts: (parts) => ({
        ...parts,
        store: {
          ...parts.store,
          together: async (work) => {
            const ids = new Set(
              (await Promise.all((await parts.store.runs()).map(({ id }) => parts.store.items(id))))
                .flat()
                .map(({ id }) => id),
            );
            return parts.store.together((changes) =>
              work({ ...changes, cancelRun: (run) => changes.cancelRun(run, ids) }),
            );
          },
        },
      }),
      ...withoutStop("cancelled"),
    }),
  },
  {
    name: "buys again on resume of a cancelled run",
    matters: isCancelled,
    make: () => withoutStop("collect"),
  },
  {
    name: "takes what a cancelled run has submitted for done with",
    matters: isCancelled,
    make: () => ({
      parts: (parts) => ({
        ...parts,
        store: {
          ...parts.store,
          due: async (run, ...how) => {
            const due = await parts.store.due(run, ...how);
            if ((await parts.store.run(run))?.state !== "cancelled") return due;
            return { ...due, tasks: [], counts: { ...due.counts, processing: 0 } };
          },
        },
      }),
    }),
  },
];

function isCancelled({ cancel }: Scenario): boolean {
  return cancel !== undefined;
}

/** It does not stop for that. */
function withoutStop(kind: "cancelled" | "collect"): Substitution {
  return {
    session: ({ gate }) => {
      const { stop } = gate;
      gate.stops = gate.stops.filter((one) => one.kind !== kind);
      gate.stop = (other, message) => {
        if (other !== kind) stop.call(gate, other, message);
      };
    },
  };
}
