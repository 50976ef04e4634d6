import type { Queue, TakenJob } from "../../../src/fleet/queue.js";
import type { Mutant } from "../mutants.js";
import { moneyMutants } from "../mutants-money.js";
import type { Parts, Substitution } from "../runner.js";

/** Fleets that are broken: by what they do with leases, with the lock, or with files. */
export function fleetMutants(): readonly Mutant[] {
  const ofFleet: Omit<Mutant, "isFleet">[] = [
    { name: "believes a worker whose lease has ended", make: believing },
    { name: "gives two workers the same job", make: givingTwice },
    {
      name: "does not renew a lease",
      make: () => ofQueue((queue) => ({ ...queue, renew: async () => true })),
    },
    {
      name: "gives nobody the jobs of a worker that is gone",
      make: () => ofQueue((queue) => ({ ...queue, tidy: async () => {} })),
    },
    {
      name: "does not put in again what a dropped queue has lost",
      make: () =>
        ofQueue((queue) => ({
          ...queue,
          collect: async (ids) => ({ ...(await queue.collect(ids)), lost: [] }),
        })),
    },
    { name: "lets a worker give its file a name", make: naming },
    { name: "lets a worker tell of a file that is not synced", make: () => ({ parts: unsynced }) },
    {
      name: "goes on with a run without waiting for its lock",
      make: () => ({
        lock: (lock) => ({
          take: (process) => ({ process, isGone: false, isNoticed: false }),
          isTaken: () => false,
          free: (session) => lock.free(session),
        }),
      }),
    },
    {
      name: "plans again what a killed run was submitting",
      make: () => {
        const name = "takes what a crash cut off for not sent";
        return moneyMutants.find((mutant) => mutant.name === name)?.make() ?? {};
      },
    },
  ];
  return ofFleet.map((mutant) => ({ ...mutant, isFleet: true }));
}

function ofQueue(change: (queue: Queue) => Queue): Substitution {
  return { queue: (queue) => change(queue) };
}

/** Whatever is said of a job counts for its current lease. */
function believing(): Substitution {
  const current = new Map<string, TakenJob>();
  return ofQueue((queue) => ({
    ...queue,
    take: async (count) => {
      const taken = await queue.take(count);
      for (const job of taken) current.set(job.id, job);
      return taken;
    },
    renew: async (job) => queue.renew(current.get(job.id) ?? job),
    complete: async (job, outcome) => queue.complete(current.get(job.id) ?? job, outcome),
  }));
}

/** Whoever finds nothing in the queue gets what was given last. */
function givingTwice(): Substitution {
  const last: TakenJob[] = [];
  return {
    queue: (queue, process) => ({
      ...queue,
      take: async (count) => {
        const taken = await queue.take(count);
        if (taken.length > 0) last.push(...taken);
        else if (last.length > 0) {
          const again = last.splice(0, 1);
          process.machine.watch.tell("done", {
            sender: process,
            name: "queue.take",
            values: [count],
            result: again,
          });
          return again;
        }
        return taken;
      },
    }),
  };
}

function naming(): Substitution {
  return {
    receives: (archive) => ({
      receive: async (request, signal) => {
        const { kind, ...saved } = await archive.save(request, signal);
        return { kind, ...saved } as Awaited<ReturnType<typeof archive.receive>>;
      },
    }),
  };
}

function unsynced(parts: Parts): Parts {
  const { disk } = parts;
  const create: typeof disk.create = async (path) => ({ ...(await disk.create(path)), sync: async () => {} });
  return { ...parts, disk: { ...disk, create } };
}
