import { join } from "node:path";
import PQueue from "p-queue";
import type { Clock } from "../../clock.js";
import { type Done, type JobOutput, JobRefused } from "../../providers/provider.js";
import type { TaskRecord } from "../../service/state/state.js";
import type { JobFiles } from "./job-files.js";
import type { JobTimes } from "./job-times.js";
import type { JobChange, JobRecord } from "./journal.js";
import { bringOutput, NotFetched } from "./outputs.js";
import type { JobRecords } from "./records.js";
import type { Upstreams } from "./upstreams.js";
import { retryMsMax, retryWaits } from "./waits.js";

/** How often a file that is not there is asked for before its address is made anew, or the job is left to a person. */
const fetchesMax = 5;
const fetchesAtOnce = 4;

export interface DeliveriesParts {
  clock: Clock;
  upstreams: Upstreams;
  records: JobRecords;
  files: JobFiles;
  times: JobTimes;
  /** Does a step of a job, and again later if it cannot be put on record. */
  safely: (taskId: string, work: () => Promise<void>) => Promise<void>;
  onFailed: (task: TaskRecord, why: string) => void;
}

/** From the provider's last word on a job to the end of its task: files are brought here, or credits given back. */
export class Deliveries {
  private readonly queue = new PQueue({ concurrency: fetchesAtOnce });

  constructor(
    private readonly parts: DeliveriesParts,
    private readonly closing: AbortSignal,
  ) {}

  /** Brings the files of a job that is made, as soon as there is room for it. */
  deliver(taskId: string): void {
    void this.queue.add(() => this.parts.safely(taskId, () => this.bring(taskId)));
  }

  /** Forgets the jobs that only wait to be delivered. */
  clear(): void {
    this.queue.clear();
  }

  /** Resolves when nothing is being delivered. */
  idle(): Promise<void> {
    return this.queue.onIdle();
  }

  /** The provider has done it. What it answered in bytes is an output on disk before the journal says so. */
  async made(taskId: string, { outputs, ref, cost }: Done): Promise<JobRecord | undefined> {
    const { records, files } = this.parts;
    const job = records.job(taskId);
    if (!job) return undefined;
    const kept: JobOutput[] = [];
    const extensions: string[] = [];
    try {
      for (const [index, output] of outputs.entries()) {
        if (!("bytes" in output)) kept.push(output);
        else {
          const place = files.outputPlace(job, index + 1);
          const extension = await bringOutput(output, place, this.closing);
          extensions.push(extension);
          kept.push({ path: join(place.folder, `${place.number}.${extension}`) });
        }
      }
    } catch (error) {
      if (error instanceof JobRefused) return this.fail(job, error);
      throw error;
    }
    const change: JobChange = {
      outputs: kept,
      ...(ref === undefined ? {} : { ref }),
      ...(cost === undefined ? {} : { cost }),
    };
    if (outputs.length > 0 && extensions.length === outputs.length)
      return this.completed(job, extensions, change);
    await records.insist(taskId, { ...change, stage: "made", note: null });
    return records.job(taskId);
  }

  /** The provider's word that it has failed: decided, and the credits given back once. */
  async fail(job: JobRecord, refused: JobRefused): Promise<undefined> {
    const note = refused.billed === true ? "The provider bills it all the same." : null;
    const why = clientsText(refused);
    const task = await this.end(job, why, note);
    if (task) this.parts.onFailed(task, why);
    return undefined;
  }

  /** A person has stopped it, and the provider does not bill it. */
  async cancelled(job: JobRecord): Promise<void> {
    await this.end(job, "It was cancelled.", null);
  }

  private async end({ taskId, settings }: JobRecord, why: string, note: string | null) {
    const { records, files, upstreams } = this.parts;
    upstreams.lineOf(settings).waiting.delete(taskId);
    const task = records.task(taskId);
    if (!task) return undefined;
    await records.fail(task, why, note);
    await files.removeJobFolder(taskId);
    return task;
  }

  /** Brings the files of a job here, and decides its task. */
  private async bring(taskId: string): Promise<void> {
    const { clock, records, files } = this.parts;
    let tries = 0;
    for (const waitMs of retryWaits(10 * retryMsMax)) {
      if (this.closing.aborted) return;
      const job = records.job(taskId);
      if (!job?.outputs || job.stage !== "made") return;
      try {
        if (job.outputs.length === 0)
          throw new JobRefused("provider", "The provider's answer had no file in it.");
        const extensions: string[] = [];
        for (const [index, output] of job.outputs.entries())
          extensions.push(await bringOutput(output, files.outputPlace(job, index + 1), this.closing));
        await this.completed(job, extensions, {});
        return;
      } catch (error) {
        if (this.closing.aborted) return;
        if (error instanceof JobRefused) {
          await this.fail(job, error);
          return;
        }
        tries++;
        if (tries % fetchesMax === 0) await this.renewed(job, error as Error);
        await clock.sleep(waitMs, this.closing);
      }
    }
  }

  /** New addresses of the files from the provider, if it still has any. What it made is never given up: it is paid for. */
  private async renewed(job: JobRecord, error: Error): Promise<void> {
    const { upstreams, records } = this.parts;
    const provider = upstreams.providerOf(job.settings);
    const isGone = error instanceof NotFetched && error.gone;
    const answer =
      isGone && job.resume !== null
        ? await upstreams.ask(async (signal) => provider.poll?.(job.resume, signal)).catch(() => null)
        : null;
    if (answer && "outputs" in answer) await this.made(job.taskId, answer);
    else
      await records.update(job.taskId, {
        note: `The provider has made it, but its file cannot be fetched: ${error.message}.`,
      });
  }

  /** All its outputs are here. */
  private async completed(
    { taskId, model, submittedAt, queuedAt }: JobRecord,
    extensions: string[],
    change: JobChange,
  ): Promise<undefined> {
    const { clock, records, files, times } = this.parts;
    const task = records.task(taskId);
    if (!task) return undefined;
    await records.complete(task, extensions, change);
    times.add(model.key, clock.now() - (submittedAt ?? queuedAt));
    await files.removeJobFolder(taskId);
    return undefined;
  }
}

/**
 * Clients judge a failure by its message: what moderation refuses, they do not ask for again, and what the provider has failed they
 * do, so only what is certainly not billed is called that here.
 */
function clientsText({ kind, message, billed }: JobRefused): string {
  if (kind === "moderation") return `Refused by content moderation: ${message}`;
  return kind === "provider" && billed === false ? `The provider failed: ${message}` : message;
}
