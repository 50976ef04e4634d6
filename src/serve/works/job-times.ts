import type { TaskRecord } from "../../service/state/state.js";
import type { ServiceExtras, TaskProgress } from "../../service/world/present.js";
import type { OwnModel } from "../models/models-file.js";
import type { Journal } from "./journal.js";
import type { Upstreams } from "./upstreams.js";

/** How many of the newest jobs are looked through for the times that they took, and how many of a model count. */
const newestJobs = 2_000;
const tookMost = 20;

/** How long jobs take, and what follows for those that wait. */
export class JobTimes {
  /** By model: how long its last jobs took (ms). */
  private readonly took = new Map<string, number[]>();

  constructor(
    private readonly journal: Journal,
    private readonly upstreams: Upstreams,
  ) {
    for (const { model, ms } of journal.newest(newestJobs)) this.add(model, ms);
  }

  add(model: string, ms: number): void {
    this.took.set(model, [...(this.took.get(model) ?? []), ms].slice(-tookMost));
  }

  /** The median: one that ended while the service was not there seems to have taken as long as that. */
  usualMs(model: string): number | null {
    const took = this.took.get(model)?.toSorted((a, b) => a - b);
    return took?.[took.length >> 1] ?? null;
  }

  /** What can be said of a task that is not decided yet. */
  progress(task: TaskRecord): TaskProgress {
    const job = this.journal.job(task.id);
    if (!job) return {};
    const line = this.upstreams.lineOf(job.settings);
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
    const { upstreams } = this;
    const usualMs = (model: string) => this.usualMs(model);
    return [...new Set(models.map(({ provider }) => upstreams.lineOf(provider)))].map((line) => {
      const keys = models
        .filter(({ provider }) => upstreams.lineOf(provider) === line)
        .map(({ listed }) => listed.key);
      return {
        at_once: line.concurrency,
        ahead_ms: line.aheadMs(line.waiting.size, usualMs),
        usual_ms: Object.fromEntries(keys.map((key) => [key, usualMs(key)])),
      };
    });
  }
}
