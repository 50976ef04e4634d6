import type { Clock } from "../../clock.js";
import type { Provider } from "../../providers/provider.js";
import type { JobFiles } from "./job-files.js";
import type { JobChange, JobRecord, Journal } from "./journal.js";
import { providerJob } from "./provider-job.js";
import type { JobRecords } from "./records.js";
import type { Upstreams } from "./upstreams.js";
import { retryWaits } from "./waits.js";

/** How often a person's word on an unknown job is looked for. */
const personMs = 3_000;

export interface UnknownParts {
  clock: Clock;
  journal: Journal;
  upstreams: Upstreams;
  records: JobRecords;
  files: JobFiles;
  /** Goes on with a job whose stage has changed. */
  goOn: (taskId: string) => void;
  /** Does work beside the jobs, which the end of the service waits for. */
  aside: (work: () => Promise<void>) => void;
}

/** Jobs that were sent and have no answer: only their provider's word or a person's ends that. */
export class UnknownJobs {
  private readonly taskIds = new Set<string>();
  private watching = false;

  constructor(
    private readonly parts: UnknownParts,
    private readonly closing: AbortSignal,
  ) {}

  /** A submit without an answer. What may run twice is sent again; for anything else, somebody's word is waited for. */
  async lost({ taskId, settings }: JobRecord, why: string): Promise<void> {
    const { upstreams, records, goOn, aside } = this.parts;
    const provider = upstreams.providerOf(settings);
    if (provider.repeatable === "yes") {
      await records.update(taskId, { stage: "queued", submittedAt: null });
      goOn(taskId);
      return;
    }
    const note =
      provider.repeatable === "by id"
        ? "The provider's answer was lost; it is being asked whether it has the job."
        : `The provider's answer was lost (${why}). Nobody knows whether it was accepted; \`bulkgen serve jobs --unknown\` says what to do.`;
    await this.add(taskId, { note });
    if (provider.repeatable === "by id" && provider.find) aside(() => this.lookFor(taskId, provider));
  }

  /** Puts on record that nobody knows what became of a job, and waits for a person to say it. */
  async add(taskId: string, change: Pick<JobChange, "note" | "ref">): Promise<void> {
    await this.parts.records.update(taskId, { stage: "unknown", ...change });
    this.taskIds.add(taskId);
    this.watchPerson();
  }

  /** Asks the provider for a job by its id until it gives a certain answer. */
  private async lookFor(taskId: string, provider: Provider): Promise<void> {
    const { clock, journal, upstreams, records, files } = this.parts;
    for (const waitMs of retryWaits()) {
      if (this.closing.aborted || !this.isUnknown(taskId)) return;
      try {
        const job = records.job(taskId);
        const task = records.task(taskId);
        if (!job || !task) return;
        const sent = {
          at: job.submittedAt ?? job.queuedAt,
          isTaken: (ref: string) => journal.isKnown(job.provider, ref, taskId),
        };
        const lost = providerJob(job, task, files);
        const found = await upstreams.ask(async (signal) => provider.find?.(lost, signal, sent));
        if (found === undefined || !this.isUnknown(taskId)) return;
        if (found === null) await records.update(taskId, { stage: "queued", submittedAt: null, note: null });
        else {
          const { ref, resume } = found;
          await records.update(taskId, { stage: "accepted", ref, resume, note: null });
        }
        this.taskIds.delete(taskId);
        this.parts.goOn(taskId);
        return;
      } catch {
        await clock.sleep(waitMs, this.closing);
      }
    }
  }

  private isUnknown(taskId: string): boolean {
    return this.parts.records.job(taskId)?.stage === "unknown";
  }

  /** While there are unknown jobs, looks whether a person has said what became of one. */
  private watchPerson(): void {
    if (this.watching) return;
    this.watching = true;
    this.parts.aside(async () => {
      while (this.taskIds.size > 0 && !this.closing.aborted) {
        await this.parts.clock.sleep(personMs, this.closing);
        for (const taskId of this.taskIds) {
          if (this.isUnknown(taskId)) continue;
          this.taskIds.delete(taskId);
          this.parts.goOn(taskId);
        }
      }
      this.watching = false;
    });
  }
}
