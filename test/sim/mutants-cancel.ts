import type { Mutant } from "./mutants.js";
import type { Substitution } from "./runner.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where a run is cancelled. */
export const cancelMutants: readonly Mutant[] = [
  {
    name: "goes on submitting after a cancel",
    matters: isCancelled,
    store: ({ runs, items, together }) => ({
      together: async (work) => {
        const all = await Promise.all((await runs()).map(({ id }) => items(id)));
        const ids = new Set(all.flat().map(({ id }) => id));
        return together((changes) => work({ ...changes, cancelRun: (run) => changes.cancelRun(run, ids) }));
      },
    }),
    session: withoutStop("cancelled"),
  },
  {
    name: "buys again on resume of a cancelled run",
    matters: isCancelled,
    session: withoutStop("collect"),
  },
  {
    name: "takes what a cancelled run has submitted for done with",
    matters: isCancelled,
    store: (store) => ({
      due: async (run, ...how) => {
        const due = await store.due(run, ...how);
        if ((await store.run(run))?.state !== "cancelled") return due;
        return { ...due, tasks: [], counts: { ...due.counts, processing: 0 } };
      },
    }),
  },
];

function isCancelled({ cancel }: Scenario): boolean {
  return cancel !== undefined;
}

/** It does not stop for that. */
function withoutStop(kind: "cancelled" | "collect"): NonNullable<Substitution["session"]> {
  return ({ gate }) => {
    const { stop } = gate;
    gate.stops = gate.stops.filter((one) => one.kind !== kind);
    gate.stop = (other, message) => {
      if (other !== kind) stop.call(gate, other, message);
    };
  };
}
