import { setMaxListeners } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import PQueue from "p-queue";
import { mediaFields } from "../../api/inputs.js";
import type { Clock, Random } from "../../clock.js";
import type { ProviderKind } from "../../providers/kind.js";
import {
  type Accepted,
  type Done,
  JobLater,
  type JobOutput,
  JobRefused,
  type MediaFile,
  type MediaName,
  type ModelSettings,
  type Provider,
  type ProviderJob,
  type ProviderSettings,
} from "../../providers/provider.js";
import type { Proxies } from "../../proxy/variables.js";
import { ServiceRefusal, type WorldResponse } from "../../service/answers/answers.js";
import type { StoredFile } from "../../service/answers/reply.js";
import type { SqliteState } from "../../service/state/sqlite-state.js";
import type { Change, TaskRecord } from "../../service/state/state.js";
import type { TakenTask, WantedTask, Workshop } from "../../service/world/generate.js";
import type { ServiceExtras, TaskProgress } from "../../service/world/present.js";
import type { OwnModel } from "../models/models-file.js";
import { bringInput, type OwnFile } from "./inputs.js";
import type { JobChange, JobRecord, Journal } from "./journal.js";
import { ProviderLine } from "./line.js";
import { bringOutput, contentTypeOf, NotFetched, type OutputPlace, removeFolder } from "./outputs.js";

/** What the works need of the service around them. */
export interface WorksParts {
  clock: Clock;
  random: Random;
  state: SqliteState;
  journal: Journal;
  /** The folder for files of jobs, outputs and inputs. */
  folder: string;
  /** The folder of the models file. */
  modelsFolder: string;
  /** The models as they are now. */
  model: (key: string) => OwnModel | undefined;
  kinds: readonly ProviderKind[];
  allowedHosts: () => readonly string[];
  key: (settings: ProviderSettings) => string | null;
  env: Readonly<Record<string, string>>;
  proxies: Proxies | null;
  /** A file of this service by its address, for a task of this account. */
  own: (accountId: string) => OwnFile;
  /** The change that decides a task. */
  decision: (task: Pick<TaskRecord, "id" | "dueAt">, error: string | null, outputs?: string[]) => Change;
  /** Does the work in a transaction, and resolves when it is committed. */
  commit: (work: () => void) => Promise<void>;
  onError: (error: Error) => void;
}

/**
 * A job is asked for again after this share of the time that it has taken: a place that became free is filled a little late, and
 * stays empty for so small a part of the time.
 */
const pollShare = 0.03;
const pollMsMin = 1_000;
const pollMsMax = 10_000;
/** How many of the newest jobs are looked through for the times that they took, and how many of a model count. */
const newestJobs = 2_000;
const tookMost = 20;
const pollTimeoutMs = 60_000;
const retryMsMax = 60_000;
/** How often a file that is not there is asked for before its address is made anew, or people are told. */
const fetchesMax = 5;
const fetchesAtOnce = 4;
/** How often a person's word on an unknown job is looked for. */
const personMs = 3_000;

/** Does the jobs: hands each to its provider once, follows it to the provider's own word, and delivers its files. */
export class Works implements Workshop {
  private readonly lines = new Map<string, ProviderLine>();
  private readonly providers = new Map<string, Provider>();
  private readonly delivering = new PQueue({ concurrency: fetchesAtOnce });
  private readonly closing = new AbortController();
  /** Jobs that only somebody's word can end. */
  private readonly unknown = new Set<string>();
  private readonly under = new Set<Promise<void>>();
  private watching = false;
  /** By model: how long its last jobs took (ms). */
  private readonly took = new Map<string, number[]>();

  constructor(private readonly parts: WorksParts) {
    setMaxListeners(0, this.closing.signal);
    for (const { model, ms } of parts.journal.newest(newestJobs)) this.tookSo(model, ms);
  }

  /** The task as it is taken; 429 for its model alone if too many wait. */
  take({ id, model, now }: WantedTask): TakenTask {
    const own = this.parts.model(model.key);
    const line = own && this.lineOf(own.provider);
    if (own && line && line.waiting.size >= own.provider.waiting) {
      const message = `${line.waiting.size} jobs wait for ${model.key} already.`;
      const seconds = Math.max(1, Math.ceil((this.usualMs(model.key) ?? 10_000) / line.concurrency / 1_000));
      const headers = { "Retry-After": String(seconds) };
      throw new ServiceRefusal(429, "RATE_LIMITED", message, headers, "json", { scope: "model" });
    }
    return { externalId: id, dueAt: now, outcome: null, error: null, outputs: [], goneAt: null };
  }

  /** Within the transaction that takes the task. */
  record(task: TaskRecord): void {
    const model = this.parts.model(task.model);
    if (!model) throw new Error(`the model ${task.model} is no longer there`);
    const { provider: settings, settings: told } = model;
    this.parts.journal.add({ taskId: task.id, settings, model: told, queuedAt: task.createdAt });
  }

  begin(task: TaskRecord): void {
    const job = this.parts.journal.job(task.id);
    if (job) this.enqueue(job, false);
  }

  /** Goes on with every job that an earlier process has left. */
  async resume(): Promise<void> {
    const open = this.parts.journal.open();
    // Those that a provider has already keep their places there.
    const order = (job: JobRecord) => (job.stage === "accepted" ? 0 : 1);
    for (const job of open.toSorted((one, other) => order(one) - order(other))) {
      if (job.stage === "submitting" || job.stage === "unknown") await this.lost(job, lostWith);
      else if (job.stage === "made") this.deliver(job.taskId);
      else this.enqueue(job, job.stage === "accepted");
    }
  }

  progress(task: TaskRecord): TaskProgress {
    const job = this.parts.journal.job(task.id);
    if (!job) return {};
    const line = this.lineOf(job.settings);
    const position = job.stage === "queued" ? line.position(task.id) : null;
    const aheadMs = position === null ? null : line.aheadMs(position, (model) => this.usualMs(model));
    return {
      ...(job.note === null || job.stage === "decided" ? {} : { note: job.note }),
      ...(job.submittedAt === null ? {} : { started_at: new Date(job.submittedAt).toISOString() }),
      ...(position === null
        ? {}
        : { queue: { position, ...(aheadMs === null ? {} : { ahead_ms: aheadMs }) } }),
    };
  }

  /** What each provider of these models does at once, has to do already, and takes for a job. */
  providersNow(models: readonly OwnModel[]): ServiceExtras["providers"] {
    const usualMs = (model: string) => this.usualMs(model);
    return [...new Set(models.map(({ provider }) => this.lineOf(provider)))].map((line) => {
      const keys = models
        .filter(({ provider }) => this.lineOf(provider) === line)
        .map(({ listed }) => listed.key);
      return {
        at_once: line.concurrency,
        ahead_ms: line.aheadMs(line.waiting.size, usualMs),
        usual_ms: Object.fromEntries(keys.map((key) => [key, usualMs(key)])),
      };
    });
  }

  /** The median: one that ended while the service was not there seems to have taken as long as that. */
  private usualMs(model: string): number | null {
    const took = this.took.get(model)?.toSorted((a, b) => a - b);
    return took?.[took.length >> 1] ?? null;
  }

  private tookSo(model: string, ms: number): void {
    this.took.set(model, [...(this.took.get(model) ?? []), ms].slice(-tookMost));
  }

  /** One output, or the answer that says why it is not there. */
  async output(task: TaskRecord, number: number): Promise<StoredFile | WorldResponse> {
    const path = this.outputPath(task, number);
    const found = await stat(path).catch(() => null);
    if (found === null)
      return {
        status: 410,
        headers: {},
        body: { error: { code: "FILE_GONE", message: "This file has been cleaned up." } },
      };
    // A file that is finished never changes.
    const etag = `"${task.id}-${number}-${found.size}"`;
    return { path, size: found.size, contentType: contentTypeOf(path), etag };
  }

  outputPath(task: TaskRecord, number: number): string {
    return join(this.parts.folder, "outputs", task.id, `${number}.${task.outputs[number - 1]}`);
  }

  /**
   * Stops a job: one that waits ends at once, one that the provider has is stopped there, and ends if the provider does not bill
   * it. Resolves with what was done.
   */
  async cancel(taskId: string): Promise<"cancelled" | "asked" | "too late"> {
    const { journal } = this.parts;
    const job = journal.job(taskId);
    if (job?.stage === "queued") {
      await this.fail(job, new JobRefused("provider", cancelled, false));
      return "cancelled";
    }
    if (job?.stage !== "accepted") return "too late";
    const provider = this.providerOf(job.settings);
    const answer = await this.asking(async (signal) => provider.cancel?.(job.resume, signal)).catch(
      () => undefined,
    );
    if (answer?.billed === false && journal.job(taskId)?.stage === "accepted") {
      await this.fail(job, new JobRefused("provider", cancelled, false));
      return "cancelled";
    }
    if (answer) await this.update(taskId, { note: "The provider was asked to stop." });
    return answer ? "asked" : "too late";
  }

  /** What is wrong with a provider for its models, or null; costs nothing. */
  async check(settings: ProviderSettings, models: readonly ModelSettings[]): Promise<string | null> {
    const provider = this.providerOf(settings);
    try {
      return (await this.asking(async (signal) => provider.check?.(signal, models))) ?? null;
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
    for (const line of this.lines.values()) line.clear();
    this.delivering.clear();
    await Promise.all([...this.lines.values()].map((line) => line.idle()));
    await this.delivering.onIdle();
    await Promise.all(this.under);
    for (const provider of this.providers.values()) await provider.close?.();
  }

  /** How many paid requests have no answer yet. */
  get unanswered(): number {
    return this.sending;
  }
  private sending = 0;

  private enqueue(job: JobRecord, first: boolean): void {
    const line = this.lineOf(job.settings);
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
    const { journal, state } = this.parts;
    let job = journal.job(taskId);
    const task = state.task(taskId);
    if (!job || !task || this.closing.signal.aborted) return;
    if (job.stage === "queued") job = await this.send(job, task);
    if (job?.stage === "accepted" && job.resume === null) job = await this.byName(job, task);
    if (job?.stage === "accepted") job = await this.follow(job);
    if (job?.stage === "made") this.deliver(taskId);
  }

  private async send(job: JobRecord, task: TaskRecord): Promise<JobRecord | undefined> {
    const { taskId } = job;
    const line = this.lineOf(job.settings);
    const provider = this.providerOf(job.settings);
    let ready: ProviderJob;
    try {
      ready = await this.ready(job, task);
    } catch (error) {
      if (this.closing.signal.aborted) return undefined;
      return this.fail(job, asRefused(error));
    }
    await line.turn();
    // It may have been cancelled meanwhile.
    if (this.closing.signal.aborted || this.parts.journal.job(taskId)?.stage !== "queued") return undefined;
    line.waiting.delete(taskId);
    await this.update(taskId, { stage: "submitting", submittedAt: this.now(), note: null });
    const answer = await this.answered(provider, ready, job.settings);
    if (!(answer instanceof Error)) return this.taken(job, answer);
    if (answer instanceof JobRefused) return this.fail(job, answer);
    if (answer instanceof JobLater) {
      if (answer.scope === "provider") line.pause(answer.afterMs);
      await this.update(taskId, { stage: "queued", submittedAt: null, note: answer.message });
      this.again(taskId, answer.scope === "job" ? answer.afterMs : 0);
      return undefined;
    }
    // A program that was interrupted is run again by the next process.
    if (provider.repeatable === "yes" && this.closing.signal.aborted) return undefined;
    await this.lost(this.parts.journal.job(taskId) ?? job, answer.message);
    return undefined;
  }

  /** Asks a provider something that costs nothing, for so long at most. */
  private async asking<Answer>(ask: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const late = new AbortController();
    const answered = new AbortController();
    void this.parts.clock.sleep(pollTimeoutMs, answered.signal).then(() => late.abort());
    try {
      return await ask(AbortSignal.any([this.closing.signal, late.signal]));
    } finally {
      answered.abort();
    }
  }

  /** The provider's answer, or what was thrown instead. */
  private async answered(
    provider: Provider,
    job: ProviderJob,
    { timeoutMs }: ProviderSettings,
  ): Promise<Done | Accepted | Error> {
    const late = new AbortController();
    const answered = new AbortController();
    void this.parts.clock.sleep(timeoutMs, answered.signal).then(() => late.abort());
    // What may run again is interrupted when the service ends; what may not be is waited for.
    const signal =
      provider.repeatable === "yes" ? AbortSignal.any([late.signal, this.closing.signal]) : late.signal;
    this.sending++;
    try {
      return await provider.submit(job, signal);
    } catch (error) {
      const isLate = late.signal.aborted && !answered.signal.aborted && provider.repeatable === "yes";
      if (isLate && !(error instanceof JobRefused))
        return new JobRefused("provider", `It took longer than ${Math.round(timeoutMs / 1_000)} s.`, false);
      return error instanceof Error ? error : new Error(String(error));
    } finally {
      this.sending--;
      answered.abort();
    }
  }

  private async taken({ taskId }: JobRecord, answer: Done | Accepted): Promise<JobRecord | undefined> {
    if (!("outputs" in answer)) {
      const { ref, resume } = answer;
      await this.insist(() => this.parts.journal.update(taskId, { stage: "accepted", ref, resume }));
      return this.parts.journal.job(taskId);
    }
    return this.made(taskId, answer);
  }

  /** The provider has done it. What it answered in bytes is an output on disk before the journal says so. */
  private async made(taskId: string, { outputs, ref, cost }: Done): Promise<JobRecord | undefined> {
    const job = this.parts.journal.job(taskId);
    if (!job) return undefined;
    const kept: JobOutput[] = [];
    const extensions: string[] = [];
    try {
      for (const [index, output] of outputs.entries()) {
        if (!("bytes" in output)) kept.push(output);
        else {
          const place = this.placeOf(job, index + 1);
          const extension = await bringOutput(output, place, this.closing.signal);
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
    await this.insist(() => this.parts.journal.update(taskId, { ...change, stage: "made", note: null }));
    return this.parts.journal.job(taskId);
  }

  /** All its outputs are here. */
  private async completed(
    { taskId, model, submittedAt, queuedAt }: JobRecord,
    extensions: string[],
    change: JobChange,
  ): Promise<undefined> {
    const { journal, state } = this.parts;
    const task = state.task(taskId);
    if (!task) return undefined;
    await this.insist(() => {
      if (journal.job(taskId)?.stage === "decided") return;
      state.commit([this.parts.decision(task, null, extensions)]);
      journal.update(taskId, { ...change, stage: "decided", endedAt: this.now(), note: null });
    });
    this.tookSo(model.key, this.now() - (submittedAt ?? queuedAt));
    await removeFolder(this.jobFolder(taskId));
    return undefined;
  }

  /** A job that a person has found at its provider; unknown again, with the reason, if it cannot be asked for. */
  private async byName(job: JobRecord, task: TaskRecord): Promise<JobRecord | undefined> {
    const { taskId, ref } = job;
    const provider = this.providerOf(job.settings);
    try {
      const found = await this.asking(async (signal) =>
        provider.named?.(this.told(job, task, {}), ref ?? "", signal),
      );
      if (!found) throw new Error("its provider answers at once, and cannot be asked for a job");
      await this.update(taskId, { resume: found.resume, ref: found.ref });
      return this.parts.journal.job(taskId);
    } catch (error) {
      if (this.closing.signal.aborted) return undefined;
      const note = `It cannot be followed by the name ${ref}: ${(error as Error).message}. \`bulkgen serve jobs --unknown\` says what else can be done.`;
      await this.update(taskId, { stage: "unknown", ref: null, note });
      this.unknown.add(taskId);
      this.watchPerson();
      return undefined;
    }
  }

  /** Asks the provider until it says how the job has ended. */
  private async follow(job: JobRecord): Promise<JobRecord | undefined> {
    const { taskId } = job;
    const line = this.lineOf(job.settings);
    const provider = this.providerOf(job.settings);
    let { resume } = job;
    const submittedAt = job.submittedAt ?? this.now();
    let waitMs = pollMsMin;
    let failures = 0;
    for (;;) {
      await line.pollTurn(waitMs);
      if (this.closing.signal.aborted || this.parts.journal.job(taskId)?.stage !== "accepted")
        return undefined;
      if (!provider.poll) return undefined;
      try {
        const poll = provider.poll.bind(provider);
        const asked = resume;
        const answer = await this.asking((signal) => poll(asked, signal));
        if (this.parts.journal.job(taskId)?.stage !== "accepted") return undefined;
        if (!("running" in answer)) return await this.made(taskId, answer);
        failures = 0;
        const note = answer.note ?? null;
        if (answer.resume !== undefined) resume = answer.resume;
        if (note !== (this.parts.journal.job(taskId)?.note ?? null) || answer.resume !== undefined)
          await this.update(taskId, { note, resume });
        const age = this.now() - submittedAt;
        waitMs = answer.afterMs ?? Math.min(pollMsMax, Math.max(pollMsMin, pollShare * age));
      } catch (error) {
        if (this.closing.signal.aborted) return undefined;
        if (error instanceof JobRefused) return this.fail(job, error);
        failures++;
        waitMs = error instanceof JobLater ? error.afterMs : Math.min(retryMsMax, pollMsMin * 2 ** failures);
        if (failures === 3)
          await this.update(taskId, {
            note: `The provider cannot be asked at the moment (${(error as Error).message}).`,
          });
      }
    }
  }

  /** A submit without an answer. */
  private async lost(job: JobRecord, why: string): Promise<void> {
    const { taskId } = job;
    const provider = this.providerOf(job.settings);
    if (provider.repeatable === "yes") {
      await this.update(taskId, { stage: "queued", submittedAt: null });
      this.again(taskId, 0);
      return;
    }
    const note =
      provider.repeatable === "by id"
        ? "The provider's answer was lost; it is being asked whether it has the job."
        : `The provider's answer was lost (${why}). Nobody knows whether it was accepted; \`bulkgen serve jobs --unknown\` says what to do.`;
    await this.update(taskId, { stage: "unknown", note });
    this.unknown.add(taskId);
    if (provider.repeatable === "by id" && provider.find) this.aside(() => this.lookFor(taskId, provider));
    this.watchPerson();
  }

  /** Asks the provider for a job by its id until it gives a certain answer. */
  private async lookFor(taskId: string, provider: Provider): Promise<void> {
    let waitMs = pollMsMin;
    while (!this.closing.signal.aborted && this.isUnknown(taskId)) {
      try {
        const job = this.parts.journal.job(taskId);
        const task = this.parts.state.task(taskId);
        if (!job || !task) return;
        const sent = {
          at: job.submittedAt ?? job.queuedAt,
          isTaken: (ref: string) => this.parts.journal.isKnown(job.provider, ref, taskId),
        };
        const told = this.told(job, task, {});
        const found = await this.asking(async (signal) => provider.find?.(told, signal, sent));
        if (found === undefined || !this.isUnknown(taskId)) return;
        if (found === null) await this.update(taskId, { stage: "queued", submittedAt: null, note: null });
        else
          await this.update(taskId, { stage: "accepted", ref: found.ref, resume: found.resume, note: null });
        this.unknown.delete(taskId);
        this.again(taskId, 0);
        return;
      } catch {
        await this.parts.clock.sleep(waitMs, this.closing.signal);
        waitMs = Math.min(retryMsMax, waitMs * 2);
      }
    }
  }

  private isUnknown(taskId: string): boolean {
    return this.parts.journal.job(taskId)?.stage === "unknown";
  }

  /** While there are unknown jobs, looks whether a person has said what became of one. */
  private watchPerson(): void {
    if (this.watching) return;
    this.watching = true;
    this.aside(async () => {
      while (this.unknown.size > 0 && !this.closing.signal.aborted) {
        await this.parts.clock.sleep(personMs, this.closing.signal);
        for (const taskId of this.unknown) {
          const job = this.parts.journal.job(taskId);
          if (job?.stage === "unknown") continue;
          this.unknown.delete(taskId);
          if (job && job.stage !== "decided") this.enqueue(job, true);
        }
      }
      this.watching = false;
    });
  }

  private deliver(taskId: string): void {
    void this.delivering.add(() => this.safely(taskId, () => this.bring(taskId)));
  }

  /** Brings the files of a job here, and decides its task. */
  private async bring(taskId: string): Promise<void> {
    const { journal, state, clock } = this.parts;
    const task = state.task(taskId);
    let tries = 0;
    let waitMs = pollMsMin;
    while (!this.closing.signal.aborted) {
      const job = journal.job(taskId);
      if (!job?.outputs || !task || job.stage !== "made") return;
      try {
        if (job.outputs.length === 0)
          throw new JobRefused("provider", "The provider's answer had no file in it.");
        const extensions: string[] = [];
        for (const [index, output] of job.outputs.entries())
          extensions.push(await bringOutput(output, this.placeOf(job, index + 1), this.closing.signal));
        await this.completed(job, extensions, {});
        return;
      } catch (error) {
        if (this.closing.signal.aborted) return;
        if (error instanceof JobRefused) {
          await this.fail(job, error);
          return;
        }
        tries++;
        if (tries % fetchesMax === 0) await this.renewed(job, error as Error);
        await clock.sleep(waitMs, this.closing.signal);
        waitMs = Math.min(10 * retryMsMax, waitMs * 2);
      }
    }
  }

  /** New addresses of the files from the provider, if it still has any. What it made is never given up: it is paid for. */
  private async renewed(job: JobRecord, error: Error): Promise<void> {
    const provider = this.providerOf(job.settings);
    const isGone = error instanceof NotFetched && error.gone;
    const answer =
      isGone && job.resume !== null
        ? await this.asking(async (signal) => provider.poll?.(job.resume, signal)).catch(() => null)
        : null;
    if (answer && "outputs" in answer) await this.made(job.taskId, answer);
    else
      await this.update(job.taskId, {
        note: `The provider has made it, but its file cannot be fetched: ${error.message}.`,
      });
  }

  /** The provider's word that it has failed: decided, and the credits given back once. */
  private async fail(job: JobRecord, refused: JobRefused): Promise<undefined> {
    const { journal, state } = this.parts;
    const { taskId } = job;
    this.lineOf(job.settings).waiting.delete(taskId);
    const task = state.task(taskId);
    if (!task) return undefined;
    const billed = refused.billed === true ? "The provider bills it all the same." : null;
    // Clients judge a failure by its message: what moderation refuses, they do not ask for again.
    const said = refused.kind === "moderation" ? "Refused by content moderation: " : "";
    await this.parts.commit(() => {
      if (journal.job(taskId)?.stage === "decided") return;
      state.commit([this.parts.decision(task, said + refused.message)]);
      journal.update(taskId, { stage: "decided", endedAt: this.now(), note: billed });
    });
    await removeFolder(this.jobFolder(taskId));
    return undefined;
  }

  private again(taskId: string, afterMs: number): void {
    const enqueue = () => {
      const job = this.parts.journal.job(taskId);
      if (job && job.stage !== "decided" && !this.closing.signal.aborted) this.enqueue(job, true);
    };
    if (afterMs === 0) enqueue();
    else this.aside(() => this.parts.clock.sleep(afterMs, this.closing.signal).then(enqueue));
  }

  /** Everything that a provider needs, with the inputs on this disk. */
  private async ready(job: JobRecord, task: TaskRecord): Promise<ProviderJob> {
    const folder = this.jobFolder(job.taskId);
    const isNew = (await mkdir(folder, { recursive: true })) !== undefined;
    if (!isNew) {
      // Left by an earlier try.
      await removeFolder(folder);
      await mkdir(folder);
    }
    const media: Partial<Record<MediaName, MediaFile>> = {};
    for (const field of mediaFields) {
      const address = task.input[field];
      if (address === undefined) continue;
      const name = field.replace("_url", "") as MediaName;
      const place = {
        folder: join(this.parts.folder, "inputs"),
        own: this.parts.own(task.accountId),
        allowedHosts: this.parts.allowedHosts(),
        proxies: this.parts.proxies,
      };
      media[name] = await bringInput(name, address, place, this.closing.signal);
    }
    return this.told(job, task, media);
  }

  private told(job: JobRecord, task: TaskRecord, media: ProviderJob["media"]): ProviderJob {
    const { prompt = "", ...rest } = task.input;
    const params = Object.fromEntries(
      Object.entries(rest).filter(([name]) => !(mediaFields as readonly string[]).includes(name)),
    );
    return { id: job.taskId, model: job.model, prompt, params, media, folder: this.jobFolder(job.taskId) };
  }

  private placeOf({ taskId, model: { category } }: JobRecord, number: number): OutputPlace {
    const { folder, proxies } = this.parts;
    return { folder: join(folder, "outputs", taskId), number, category, proxies };
  }

  private jobFolder(taskId: string): string {
    return join(this.parts.folder, "jobs", taskId);
  }

  private update(taskId: string, change: JobChange): Promise<void> {
    return this.parts.commit(() => this.parts.journal.update(taskId, change));
  }

  /** Puts on record what the provider has said: while the disk is full, until it is not. */
  private async insist(work: () => void): Promise<void> {
    for (let waitMs = pollMsMin; ; waitMs = Math.min(retryMsMax, waitMs * 2)) {
      try {
        await this.parts.commit(work);
        return;
      } catch (error) {
        if (this.closing.signal.aborted) throw error;
        this.parts.onError(error as Error);
        await this.parts.clock.sleep(waitMs, this.closing.signal);
      }
    }
  }

  private lineOf(settings: ProviderSettings): ProviderLine {
    const { name, perMinute, addresses } = settings;
    // Several machines do so many each.
    const concurrency = settings.concurrency * Math.max(1, addresses.length);
    const found = this.lines.get(name);
    if (found) {
      found.concurrency = concurrency;
      return found;
    }
    const made = new ProviderLine(concurrency, perMinute, this.parts.clock, this.closing.signal);
    this.lines.set(name, made);
    return made;
  }

  private providerOf(settings: ProviderSettings): Provider {
    const known = JSON.stringify(settings);
    const found = this.providers.get(known);
    if (found) return found;
    const kind = this.parts.kinds.find(({ name }) => name === settings.kind);
    if (!kind) throw new Error(`there is no kind of provider ${settings.kind}`);
    const { clock, random, modelsFolder: folder, env, proxies } = this.parts;
    const key = () => this.parts.key(settings);
    const made = kind.open(settings, { clock, random, folder, env, proxies, key });
    this.providers.set(known, made);
    return made;
  }

  private aside(work: () => Promise<void>): void {
    const running = work()
      .catch((error: Error) => this.parts.onError(error))
      .finally(() => this.under.delete(running));
    this.under.add(running);
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
        const job = this.parts.journal.job(taskId);
        if (this.closing.signal.aborted || !job || job.stage === "decided") return;
        if (job.stage === "submitting") await this.lost(job, (error as Error).message);
        else if (job.stage === "made") this.deliver(taskId);
        else if (job.stage !== "unknown") this.enqueue(job, true);
      });
    }
  }

  private now(): number {
    return this.parts.clock.now();
  }

  /** Removes the files of tasks that ended long ago. Resolves with how many tasks that were. */
  async clean(before: number): Promise<number> {
    const { journal, folder } = this.parts;
    const gone = journal.endedBefore(before, 100);
    for (const taskId of gone) {
      await removeFolder(join(folder, "outputs", taskId));
      await this.parts.commit(() => journal.markCleaned(taskId));
    }
    for (const id of journal.uploadsBefore(before)) {
      await removeFolder(join(folder, "uploads", id));
      await this.parts.commit(() => journal.removeUpload(id));
    }
    const inputs = join(folder, "inputs");
    for (const name of existsSync(inputs) ? await readdir(inputs) : []) {
      const path = join(inputs, name);
      const found = await stat(path).catch(() => null);
      if (found && found.mtimeMs < before) await removeFolder(path);
    }
    return gone.length;
  }
}

const lostWith = "the service ended while it waited";
const cancelled = "It was cancelled.";

function asRefused(error: unknown): JobRefused {
  return error instanceof JobRefused ? error : new JobRefused("input", (error as Error).message);
}
