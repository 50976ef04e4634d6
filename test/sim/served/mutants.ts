import { JobRefused, type Provider } from "../../../src/providers/provider.js";
import type { OwnService } from "../../../src/serve/own-service.js";
import type { Deliveries } from "../../../src/serve/works/deliveries.js";
import type { JobRecords } from "../../../src/serve/works/records.js";
import type { UnknownJobs } from "../../../src/serve/works/unknown.js";
import type { Upstreams } from "../../../src/serve/works/upstreams.js";
import type { Mutant } from "../mutants.js";

/** What of the works these replace: hardly any of it is public, and none of it is a switch. */
interface Inside {
  records: Pick<JobRecords, "update">;
  unknown: Pick<UnknownJobs, "lost">;
  deliveries: Pick<Deliveries, "fail" | "deliver">;
  upstreams: Pick<Upstreams, "providerOf">;
  again(taskId: string, afterMs: number): void;
  resume(): Promise<void>;
}

function insideOf({ works }: OwnService): Inside {
  return works as unknown as Inside;
}

/** Services of a models file that are broken: by what they do between the journal and the providers. */
const ofServed: readonly Omit<Mutant, "isServed">[] = [
  {
    name: "sends a job before its journal says so",
    served: (own) => {
      const { records } = insideOf(own);
      const update = records.update.bind(records);
      records.update = (taskId, change) => {
        const written = update(taskId, change);
        return change.stage === "submitting" ? Promise.resolve() : written;
      };
    },
  },
  {
    name: "sends a job again that was being sent when its service ended",
    served: (own) => {
      const works = insideOf(own);
      const resume = works.resume.bind(works);
      works.resume = async () => {
        for (const { taskId, stage } of own.journal.open())
          if (stage === "submitting")
            await works.records.update(taskId, { stage: "queued", submittedAt: null });
        await resume();
      };
    },
  },
  {
    name: "sends a job again whose answer is late",
    served: (own) => {
      const works = insideOf(own);
      const lost = works.unknown.lost.bind(works.unknown);
      works.unknown.lost = async (job, why) => {
        if (why !== "the time is out") return lost(job, why);
        await works.records.update(job.taskId, { stage: "queued", submittedAt: null });
        works.again(job.taskId, 0);
      };
    },
  },
  {
    name: "tells of a job in doubt that it has failed",
    served: (own) => {
      const { unknown, deliveries } = insideOf(own);
      unknown.lost = (job, why) => deliveries.fail(job, new JobRefused("provider", why));
    },
  },
  {
    name: "fails a job that its provider cannot be asked for",
    served: (own) =>
      providing(own, ({ poll }) => ({
        poll: (resume, signal) =>
          (poll as NonNullable<typeof poll>)(resume, signal).catch((error: Error) => {
            throw new JobRefused("provider", error.message);
          }),
      })),
  },
  {
    name: "takes it that a provider cannot tell for a no",
    served: (own) =>
      providing(own, ({ find }) => ({
        find: (job, signal, sent) => (find as NonNullable<typeof find>)(job, signal, sent).catch(() => null),
      })),
  },
  {
    name: "forgets at its start what was made and not delivered",
    served: (own) => {
      const works = insideOf(own);
      const { deliveries } = works;
      const resume = works.resume.bind(works);
      const deliver = deliveries.deliver.bind(deliveries);
      works.resume = async () => {
        deliveries.deliver = () => {};
        await resume();
        deliveries.deliver = deliver;
      };
    },
  },
  {
    name: "gives credits back twice",
    served: ({ state }) => {
      const commit = state.commit.bind(state);
      state.commit = (changes) =>
        commit([...changes, ...changes.filter(({ kind }) => kind === "task refunded")]);
    },
  },
  {
    name: "gives a repeated request another task",
    served: ({ state }) => {
      state.repeated = () => undefined;
    },
  },
];

export const servedMutants: readonly Mutant[] = ofServed.map((mutant) => ({ ...mutant, isServed: true }));

/** Providers that differ in some of their methods, where they have them. */
function providing(own: OwnService, broken: (provider: Provider) => Partial<Provider>): void {
  const { upstreams } = insideOf(own);
  const providerOf = upstreams.providerOf.bind(upstreams);
  upstreams.providerOf = (settings) => {
    const provider = providerOf(settings);
    const ways = Object.entries(broken(provider)).filter(([name]) => provider[name as keyof Provider]);
    return { ...provider, ...Object.fromEntries(ways) };
  };
}
