import { setMaxListeners } from "node:events";
import {
  type Accepted,
  type Done,
  JobLater,
  JobRefused,
  type ModelSettings,
  OddAnswer,
  type ProviderJob,
  type ProviderSettings,
} from "../../providers/provider.js";
import { ServiceRefusal } from "../../service/answers/answers.js";
import type { TaskRecord } from "../../service/state/state.js";
import type { TakenTask, WantedTask, Workshop } from "../../service/world/generate.js";
import type { OwnModel } from "../models/models-file.js";
import { Deliveries } from "./deliveries.js";
import { type FilesParts, JobFiles } from "./job-files.js";
import { JobTimes } from "./job-times.js";
import type { JobRecord } from "./journal.js";
import { providerJob, readyJob } from "./provider-job.js";
import { JobRecords, type RecordParts } from "./records.js";
import { UnknownJobs } from "./unknown.js";
import { type UpstreamParts, Upstreams } from "./upstreams.js";
import { retryMsMax } from "./waits.js";

/** What the works need of the service around them. */
export interface WorksParts extends UpstreamParts, RecordParts, FilesParts {
  /** The models as they are now. */
  model: (key: string) => OwnModel | undefined;
  /** Why a job may not be sent now: a file that it depends on does what the user has not agreed to. Null if it may be. */
  refusal: (job: Pick<JobRecord, "settings" | "model">) => string | null;
  /** A task has failed. */
  onFailed: (task: TaskRecord, why: string) => void;
}

/**
 * A job is asked for again after this share of the time that it has taken: a place that became free is filled a little late, and
 * stays empty for so small a part of the time.
 */
const pollShare = 0.03;
const pollMsMin = 1_000;
const pollMsMax = 10_000;
/** How long a provider's answers may mean nothing before its job gives up its place, and waits for a person. */
const oddMsMax = 10 * 60_000;

/** Does the jobs: hands each to its provider once, and follows it to the provider's own word. */
export class Works implements Workshop {
  readonly files: JobFiles;
  readonly times: JobTimes;
  private readonly closing = new AbortController();
  private readonly upstreams: Upstreams;
  private readonly records: JobRecords;
  private readonly deliveries: Deliveries;
  private readonly unknown: UnknownJobs;
  private readonly background = new Set<Promise<void>>();

  constructor(private readonly parts: WorksParts) {
    const { clock, journal, onFailed } = parts;
    const { signal } = this.closing;
    setMaxListeners(0, signal);
    this.files = new JobFiles(parts);
    this.upstreams = new Upstreams(parts, signal);
    this.records = new JobRecords(parts, signal);
    this.times = new JobTimes(journal, this.upstreams);
    const { files, upstreams, records, times } = this;
    const safely = (taskId: string, work: () => Promise<void>) => this.safely(taskId, work);
    this.deliveries = new Deliveries({ clock, upstreams, records, files, times, safely, onFailed }, signal);
    const goOn = (taskId: string) => this.again(taskId, 0);
    const aside = (work: () => Promise<void>) => this.aside(work);
    this.unknown = new UnknownJobs({ clock, journal, upstreams, records, files, goOn, aside }, signal);
  }

  /** The task as it is taken; 429 for its model alone if too many wait. */
  take({ id, model, now }: WantedTask): TakenTask {
    const own = this.parts.model(model.key);
    const line = own && this.upstreams.lineOf(own.provider);
    if (own && line && line.waiting.size >= own.provider.waiting) {
      const message = `${line.waiting.size} jobs wait for ${model.key} already.`;
      const usualMs = this.times.usualMs(model.key) ?? 10_000;
      const seconds = Math.max(1, Math.ceil(usualMs / line.concurrency / 1_000));
      const headers = { "Retry-After": String(seconds) };
      throw new ServiceRefusal(429, "RATE_LIMITED", message, headers, "json", { scope: "model" });
    }
    return { externalId: id, dueAt: now, outcome: null, error: null, outputs: [], goneAt: null };
  }

  /** Within the transaction that takes the task. */
  record(task: TaskRecord): void {
    const model = this.parts.model(task.model);
    if (!model) throw new Error(`the model ${task.model} is no longer there`);
    const { provider: settings, settings: modelSettings } = model;
    this.parts.journal.add({ taskId: task.id, settings, model: modelSettings, queuedAt: task.createdAt });
  }

  begin(task: TaskRecord): void {
    const job = this.records.job(task.id);
    if (job) this.enqueue(job, false);
  }

  /** Goes on with every job that an earlier process has left. */
  async resume(): Promise<void> {
    const open = this.parts.journal.open();
    // Those that a provider has already keep their places there.
    const order = (job: JobRecord) => (job.stage === "accepted" ? 0 : 1);
    for (const job of open.toSorted((one, other) => order(one) - order(other))) {
      if (job.stage === "submitting" || job.stage === "unknown") await this.unknown.lost(job, lostWith);
      else if (job.stage === "made") this.deliveries.deliver(job.taskId);
      else this.enqueue(job, job.stage === "accepted");
    }
  }

  /**
   * Stops a job: one that waits ends at once, one that the provider has is stopped there, and ends if the provider does not bill
   * it. Resolves with what was done.
   */
  async cancel(taskId: string): Promise<"cancelled" | "asked" | "too late"> {
    const job = this.records.job(taskId);
    if (job?.stage === "queued") {
      await this.deliveries.cancelled(job);
      return "cancelled";
    }
    if (job?.stage !== "accepted") return "too late";
    const provider = this.upstreams.providerOf(job.settings);
    const answer = await this.upstreams
      .ask(async (signal) => provider.cancel?.(job.resume, signal))
      .catch(() => undefined);
    if (answer?.billed === false && this.records.job(taskId)?.stage === "accepted") {
      await this.deliveries.cancelled(job);
      return "cancelled";
    }
    if (answer) await this.records.update(taskId, { note: "The provider was asked to stop." });
    return answer ? "asked" : "too late";
  }

  /** What is wrong with a provider for its models, or null; costs nothing. */
  async check(settings: ProviderSettings, models: readonly ModelSettings[]): Promise<string | null> {
    const provider = this.upstreams.providerOf(settings);
    try {
      return (await this.upstreams.ask(async (signal) => provider.check?.(signal, models))) ?? null;
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** The key of a provider; null if there is none. */
  keyOf(settings: ProviderSettings): string | null {
    return this.parts.key(settings);
  }

  /**
   * Ends all work. What has been sent is waited for, as long as its answer may take, because nobody would know it otherwise;
   * what only waits or is polled goes on in the next process.
   */
  async close(): Promise<void> {
    this.closing.abort();
    this.upstreams.clear();
    this.deliveries.clear();
    await this.upstreams.idle();
    await this.deliveries.idle();
    await Promise.all(this.background);
    await this.upstreams.close();
  }

  /** How many paid requests have no answer yet. */
  get unanswered(): number {
    return this.upstreams.unanswered;
  }

  private enqueue(job: JobRecord, first: boolean): void {
    const line = this.upstreams.lineOf(job.settings);
    const { taskId, stage, model } = job;
    if (stage === "queued") line.waiting.set(taskId, model.key);
    const work = () => this.safely(taskId, () => this.work(taskId));
    line.add(async () => {
      line.begun.set(taskId, model.key);
      await work();
      line.begun.delete(taskId);
    }, first);
  }

  /** One job, from where it is to the provider's word; it has a place at its provider. */
  private async work(taskId: string): Promise<void> {
    let job = this.records.job(taskId);
    const task = this.records.task(taskId);
    if (!job || !task || this.closing.signal.aborted) return;
    if (job.stage === "queued") job = await this.send(job, task);
    if (job?.stage === "accepted" && job.resume === null) job = await this.byName(job, task);
    if (job?.stage === "accepted") job = await this.follow(job);
    if (job?.stage === "made") this.deliveries.deliver(taskId);
  }

  private async send(job: JobRecord, task: TaskRecord): Promise<JobRecord | undefined> {
    const { taskId } = job;
    const line = this.upstreams.lineOf(job.settings);
    const refusal = this.parts.refusal(job);
    if (refusal !== null) {
      await this.records.update(taskId, { note: refusal });
      this.again(taskId, retryMsMax);
      return undefined;
    }
    const provider = this.upstreams.providerOf(job.settings);
    let ready: ProviderJob;
    try {
      ready = await readyJob(job, task, this.files, this.closing.signal);
    } catch (error) {
      if (this.closing.signal.aborted) return undefined;
      return this.deliveries.fail(job, asRefused(error));
    }
    await line.turn();
    // It may have been cancelled meanwhile.
    if (this.closing.signal.aborted || this.records.job(taskId)?.stage !== "queued") return undefined;
    line.waiting.delete(taskId);
    await this.records.update(taskId, {
      stage: "submitting",
      submittedAt: this.parts.clock.now(),
      note: null,
    });
    const answer = await this.upstreams.submit(provider, ready, job.settings);
    if (!(answer instanceof Error)) return this.taken(job, answer);
    if (answer instanceof JobRefused) return this.deliveries.fail(job, answer);
    if (answer instanceof JobLater) {
      if (answer.scope === "provider") line.pause(answer.afterMs);
      await this.records.update(taskId, { stage: "queued", submittedAt: null, note: answer.message });
      this.again(taskId, answer.scope === "job" ? answer.afterMs : 0);
      return undefined;
    }
    // A program that was interrupted is run again by the next process.
    if (provider.repeatable === "yes" && this.closing.signal.aborted) return undefined;
    await this.unknown.lost(this.records.job(taskId) ?? job, answer.message);
    return undefined;
  }

  private async taken({ taskId }: JobRecord, answer: Done | Accepted): Promise<JobRecord | undefined> {
    if (!("outputs" in answer)) {
      const { ref, resume } = answer;
      await this.records.insist(taskId, { stage: "accepted", ref, resume });
      return this.records.job(taskId);
    }
    return this.deliveries.made(taskId, answer);
  }

  /**
   * A job that a person has found at its provider, by the rules that the models file has now; unknown again, with the reason, if it
   * cannot be asked for.
   */
  private async byName(old: JobRecord, task: TaskRecord): Promise<JobRecord | undefined> {
    const own = this.parts.model(old.model.key);
    const isSame = own?.provider.name === old.provider && own.provider.kind === old.settings.kind;
    const job = isSame ? { ...old, settings: own.provider, model: own.settings } : old;
    const { taskId, ref, settings, model } = job;
    const provider = this.upstreams.providerOf(job.settings);
    try {
      const found = await this.upstreams.ask(async (signal) =>
        provider.named?.(providerJob(job, task, this.files), ref ?? "", signal),
      );
      if (!found) throw new Error("its provider answers at once, and cannot be asked for a job");
      await this.records.update(taskId, { resume: found.resume, ref: found.ref, settings, model });
      return this.records.job(taskId);
    } catch (error) {
      if (this.closing.signal.aborted) return undefined;
      const note = `It cannot be followed by the name ${ref}: ${(error as Error).message}. \`bulkgen serve jobs --unknown\` says what else can be done.`;
      await this.unknown.add(taskId, { ref: null, note });
      return undefined;
    }
  }

  /** Asks the provider until it says how the job has ended. */
  private async follow(job: JobRecord): Promise<JobRecord | undefined> {
    const { taskId } = job;
    const line = this.upstreams.lineOf(job.settings);
    const provider = this.upstreams.providerOf(job.settings);
    let { resume } = job;
    const submittedAt = job.submittedAt ?? this.parts.clock.now();
    let waitMs = pollMsMin;
    let failures = 0;
    let oddSince: number | null = null;
    for (;;) {
      await line.pollTurn(waitMs);
      if (this.closing.signal.aborted || this.records.job(taskId)?.stage !== "accepted") return undefined;
      if (!provider.poll) return undefined;
      try {
        const poll = provider.poll.bind(provider);
        const asked = resume;
        const answer = await this.upstreams.ask((signal) => poll(asked, signal));
        if (this.records.job(taskId)?.stage !== "accepted") return undefined;
        if (!("running" in answer)) return await this.deliveries.made(taskId, answer);
        failures = 0;
        oddSince = null;
        const note = answer.note ?? null;
        if (answer.resume !== undefined) resume = answer.resume;
        if (note !== (this.records.job(taskId)?.note ?? null) || answer.resume !== undefined)
          await this.records.update(taskId, { note, resume });
        const age = this.parts.clock.now() - submittedAt;
        waitMs = answer.afterMs ?? Math.min(pollMsMax, Math.max(pollMsMin, pollShare * age));
      } catch (error) {
        if (this.closing.signal.aborted) return undefined;
        if (error instanceof JobRefused) return this.deliveries.fail(job, error);
        failures++;
        oddSince = error instanceof OddAnswer ? (oddSince ?? this.parts.clock.now()) : null;
        if (oddSince !== null && this.parts.clock.now() - oddSince >= oddMsMax) {
          const note = `The provider has it, and its answers are not understood: ${(error as Error).message}. \`bulkgen serve jobs --unknown\` says what to do; what you correct in the models file holds from then on.`;
          await this.unknown.add(taskId, { note });
          return undefined;
        }
        waitMs = error instanceof JobLater ? error.afterMs : Math.min(retryMsMax, pollMsMin * 2 ** failures);
        if (failures === 3)
          await this.records.update(taskId, {
            note:
              oddSince === null
                ? `The provider cannot be asked at the moment (${(error as Error).message}).`
                : `The provider's answer is not understood (${(error as Error).message}).`,
          });
      }
    }
  }

  private again(taskId: string, afterMs: number): void {
    const enqueue = () => {
      const job = this.records.job(taskId);
      if (job && job.stage !== "decided" && !this.closing.signal.aborted) this.enqueue(job, true);
    };
    if (afterMs === 0) enqueue();
    else this.aside(() => this.parts.clock.sleep(afterMs, this.closing.signal).then(enqueue));
  }

  private aside(work: () => Promise<void>): void {
    const running = work()
      .catch((error: Error) => this.parts.onError(error))
      .finally(() => this.background.delete(running));
    this.background.add(running);
  }

  /** A step that cannot be put on record, as when the disk is full, is tried again; the journal says where it was. */
  private async safely(taskId: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.parts.onError(error as Error);
      if (this.closing.signal.aborted) return;
      this.aside(async () => {
        await this.parts.clock.sleep(retryMsMax, this.closing.signal);
        const job = this.records.job(taskId);
        if (this.closing.signal.aborted || !job || job.stage === "decided") return;
        if (job.stage === "submitting") await this.unknown.lost(job, (error as Error).message);
        else if (job.stage === "made") this.deliveries.deliver(taskId);
        else if (job.stage !== "unknown") this.enqueue(job, true);
      });
    }
  }
}

const lostWith = "the service ended while it waited";

function asRefused(error: unknown): JobRefused {
  return error instanceof JobRefused ? error : new JobRefused("input", (error as Error).message);
}
