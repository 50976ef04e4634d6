import type { TakenJob } from "../../../src/fleet/queue.js";
import type { Mutant } from "../mutants.js";
import { unsynced } from "../mutants-archive.js";
import { cutOffForNotSent } from "../mutants-money.js";
import type { Substitution } from "../runner.js";

/** Fleets that are broken: by what they do with leases, with the lock, or with files. */
export function fleetMutants(): readonly Mutant[] {
  const ofFleet: Omit<Mutant, "isFleet">[] = [
    { name: "believes a worker whose lease has ended", make: believing },
    { name: "gives two workers the same job", make: givingTwice },
    { name: "does not renew a lease", queue: { renew: async () => true } },
    { name: "gives nobody the jobs of a worker that is gone", queue: { tidy: async () => {} } },
    {
      name: "does not put in again what a dropped queue has lost",
      queue: ({ collect }) => ({ collect: async (ids) => ({ ...(await collect(ids)), lost: [] }) }),
    },
    {
      name: "lets a worker give its file a name",
      receives: (archive) => ({
        receive: async (request, signal) => {
          const { kind, ...saved } = await archive.save(request, signal);
          return { kind, ...saved } as Awaited<ReturnType<typeof archive.receive>>;
        },
      }),
    },
    { name: "lets a worker tell of a file that is not synced", disk: unsynced },
    {
      name: "goes on with a run without waiting for its lock",
      lock: (lock) => ({
        take: (process) => ({ process, isGone: false, isNoticed: false }),
        isTaken: () => false,
        free: (session) => lock.free(session),
      }),
    },
    { name: "plans again what a killed run was submitting", store: cutOffForNotSent },
  ];
  return ofFleet.map((mutant) => ({ ...mutant, isFleet: true }));
}

/** Whatever is said of a job counts for its current lease. */
function believing(): Substitution {
  const current = new Map<string, TakenJob>();
  return {
    queue: (queue) => ({
      take: async (count) => {
        const taken = await queue.take(count);
        for (const job of taken) current.set(job.id, job);
        return taken;
      },
      renew: async (job) => queue.renew(current.get(job.id) ?? job),
      complete: async (job, outcome) => queue.complete(current.get(job.id) ?? job, outcome),
    }),
  };
}

/** Whoever finds nothing in the queue gets what was given last. */
function givingTwice(): Substitution {
  const last: TakenJob[] = [];
  return {
    queue: (queue, process) => ({
      take: async (count) => {
        const taken = await queue.take(count);
        last.push(...taken);
        if (taken.length > 0 || last.length === 0) return taken;
        const result = last.splice(0, 1);
        process.machine.watch.tell("done", { sender: process, name: "queue.take", values: [count], result });
        return result;
      },
    }),
  };
}
