import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProviderKind } from "../../../src/providers/kind.js";
import {
  type Accepted,
  type Done,
  JobLater,
  JobRefused,
  type Json,
  type Provider,
  type ProviderJob,
  type Running,
} from "../../../src/providers/provider.js";
import { type Chance, chance } from "../chance.js";
import type { FaultDesk } from "../fault-desk.js";
import type { Kernel } from "../kernel.js";
import { outputBytes } from "../output-bytes.js";
import type { ServedPlan, UpstreamFault, UpstreamStep } from "../scenario.js";
import type { ServedCounts } from "./counts.js";
import { type Way, ways } from "./models.js";

/** A job that a provider has taken: what it was paid for. */
export interface Execution {
  /** From 0. */
  number: number;
  way: Way;
  jobId: string;
  prompt: string;
  /** When it is done (ms of the one true time). */
  readyAt: number;
  end: "made" | "failed" | "spoiled";
  spoiledAs: "nothing" | "empty" | "other";
  /** Its end was handed to a service that lived. */
  isTold: boolean;
  /** Of a program: it ended with the service that ran it, or was interrupted. */
  isStopped: boolean;
  /** A person has said what became of its job, without it. */
  isLetGo: boolean;
}

/** A process of the service, as the providers meet it. */
export interface Caller {
  isAlive(): boolean;
  /** Something at which the service can die: before it, or after it. */
  effect<Result>(name: string, act: () => Promise<Result>): Promise<Result>;
}

/** Hears of what the providers do, before it counts. */
export interface UpstreamRules {
  submitted(way: Way, jobId: string): void;
  accepted(execution: Execution): void;
}

const wayMs = { min: 3, max: 2_500 };

/** The providers of the models file, each with its books: whatever happens to the service, they know what they did. */
export class Upstream {
  readonly executions: Execution[] = [];
  /** Jobs that were handed a refusal before they were taken, or whose program was ended for its time. */
  readonly refused = new Set<string>();
  /** Jobs on their way to their provider. */
  private readonly underWay = new Map<string, number>();
  private readonly counts = new Map<UpstreamStep, number>();

  constructor(
    private readonly parts: {
      kernel: Kernel;
      desk: FaultDesk;
      seed: number;
      plan: ServedPlan;
      rules: UpstreamRules;
      figures: ServedCounts;
    },
  ) {}

  kinds(caller: Caller): ProviderKind[] {
    return ways.map((way) => ({
      name: way,
      describe: way,
      provider: {},
      model: {},
      defaults: {},
      needsKey: false,
      open: () => this.provider(way, caller),
    }));
  }

  executionOf(jobId: string): Execution | undefined {
    return this.executions.findLast((one) => one.jobId === jobId);
  }

  isUnderWay(jobId: string): boolean {
    return (this.underWay.get(jobId) ?? 0) > 0;
  }

  /** The host of the service is gone, and its programs with it. */
  hostDied(): void {
    for (const execution of this.executions)
      if (execution.way === "program" && !execution.isTold) execution.isStopped = true;
  }

  private provider(way: Way, caller: Caller): Provider {
    const submit = (job: ProviderJob, signal: AbortSignal) =>
      caller.effect("upstream.submit", () => this.submit(way, job, signal, caller));
    const poll = (resume: Json, signal: AbortSignal) =>
      caller.effect("upstream.poll", () => this.poll(resume, caller, signal));
    const named = async (_: unknown, ref: string) => this.named(ref);
    const find = (job: ProviderJob, signal: AbortSignal) =>
      caller.effect("upstream.find", () => this.find(job.id, caller, signal));
    if (way === "program") return { repeatable: "yes", submit };
    if (way === "at-once") return { repeatable: "no", submit };
    if (way === "queue") return { repeatable: "no", submit, poll, named };
    return { repeatable: "by id", submit, poll, find };
  }

  private next(step: UpstreamStep): { fault: UpstreamFault | null; lot: Chance } {
    const nth = (this.counts.get(step) ?? 0) + 1;
    this.counts.set(step, nth);
    return {
      fault: this.parts.desk.ofUpstream(step, nth),
      lot: chance(this.parts.seed, "upstream", step, nth),
    };
  }

  private submit(way: Way, job: ProviderJob, signal: AbortSignal, caller: Caller): Promise<Done | Accepted> {
    this.parts.rules.submitted(way, job.id);
    const { fault, lot } = this.next("submit");
    const journey = new Journey<Done | Accepted>(this.parts.kernel, caller, signal);
    const { promise, answer } = journey;
    const up = lot.scale(wayMs.min, wayMs.max);
    const down = lot.scale(wayMs.min, wayMs.max);
    if (way === "program") {
      this.run(job, fault, lot, journey, signal);
      return promise;
    }
    if (fault?.kind === "upstream-lost") {
      answer(up + down, reset);
      return promise;
    }
    this.underWay.set(job.id, (this.underWay.get(job.id) ?? 0) + 1);
    journey.later(up, () => {
      this.underWay.set(job.id, (this.underWay.get(job.id) ?? 0) - 1);
      if (fault?.kind === "upstream-later")
        return answer(down, () => {
          throw new JobLater("It is busy.", fault.afterMs, fault.scope);
        });
      if (fault?.kind === "upstream-refuses")
        return answer(down, () => {
          this.refused.add(job.id);
          throw new JobRefused("moderation", "It does not like that.", fault.billed);
        });
      const execution = this.accept(way, job, fault, lot);
      if (fault?.kind === "upstream-no-answer") {
        this.parts.figures.answersLost++;
        if (!fault.isSilent) answer(down, reset);
        return;
      }
      if (way === "at-once")
        answer(execution.readyAt - this.parts.kernel.now() + down, () => this.outcome(execution));
      else answer(down, () => this.taken(execution));
    });
    return promise;
  }

  /** A program of this host: it ends with its service, and when it is interrupted. */
  private run(
    job: ProviderJob,
    fault: UpstreamFault | null,
    lot: Chance,
    { promise, answer }: Journey<Done | Accepted>,
    signal: AbortSignal,
  ): void {
    const execution = this.accept("program", job, fault, lot);
    promise.catch(() => {
      execution.isStopped = true;
      // The service ends a program that takes too long, and that is its end.
      if (signal.aborted) this.refused.add(job.id);
    });
    const takesMs = execution.readyAt - this.parts.kernel.now();
    if (fault?.kind === "upstream-lost" || fault?.kind === "upstream-no-answer") answer(takesMs, reset);
    else
      answer(takesMs, () => {
        const { outputs } = this.outcome(execution);
        mkdirSync(job.folder, { recursive: true });
        return {
          outputs: outputs.map((output, index) => {
            const path = join(job.folder, `made-${index}`);
            if ("bytes" in output) writeFileSync(path, output.bytes);
            return { path };
          }),
        };
      });
  }

  private accept(way: Way, job: ProviderJob, fault: UpstreamFault | null, lot: Chance): Execution {
    const { kernel, plan, rules, figures } = this.parts;
    const slowMs = fault?.kind === "upstream-slow" ? fault.byMs : 0;
    const execution: Execution = {
      number: this.executions.length,
      way,
      jobId: job.id,
      prompt: job.prompt,
      readyAt: kernel.now() + lot.scale(plan.jobMs.min, plan.jobMs.max) + slowMs,
      end:
        fault?.kind === "upstream-fails" ? "failed" : fault?.kind === "upstream-spoils" ? "spoiled" : "made",
      spoiledAs: fault?.kind === "upstream-spoils" ? fault.as : "nothing",
      isTold: false,
      isStopped: false,
      isLetGo: false,
    };
    rules.accepted(execution);
    this.executions.push(execution);
    if (way === "program") figures.programs++;
    else figures.executions++;
    return execution;
  }

  /** What the provider says of a job that has ended. */
  private outcome(execution: Execution): Done {
    execution.isTold = true;
    if (execution.end === "failed") throw new JobRefused("provider", "It could not be made.", null);
    if (execution.end === "made") return { outputs: [{ bytes: madeBy(execution) }] };
    if (execution.spoiledAs === "nothing") return { outputs: [] };
    return { outputs: [{ bytes: Buffer.from(execution.spoiledAs === "empty" ? "" : "<html>sorry</html>") }] };
  }

  private poll(resume: Json, caller: Caller, signal: AbortSignal): Promise<Done | Running> {
    const { fault, lot } = this.next("poll");
    const { promise, answer } = new Journey<Done | Running>(this.parts.kernel, caller, signal);
    const ms = lot.scale(wayMs.min, wayMs.max);
    const execution = this.executions[Number((resume as { number: Json }).number)];
    if (fault?.kind === "upstream-no-answer" && fault.isSilent) return promise;
    answer(ms, () => {
      if (fault?.kind === "upstream-lost" || fault?.kind === "upstream-no-answer") return reset();
      if (fault?.kind === "upstream-later") throw new JobLater("Not so often.", fault.afterMs, fault.scope);
      if (!execution) throw new Error("404");
      if (execution.readyAt <= this.parts.kernel.now()) return this.outcome(execution);
      return {
        running: true,
        ...(lot.is(0.2) ? { note: "It is being made." } : {}),
        ...(lot.is(0.2) ? { resume: { number: execution.number, asked: lot.whole(1, 9) } } : {}),
        ...(lot.is(0.2) ? { afterMs: lot.scale(500, 60_000) } : {}),
      };
    });
    return promise;
  }

  private find(jobId: string, caller: Caller, signal: AbortSignal): Promise<Accepted | null> {
    const { fault, lot } = this.next("find");
    const { promise, answer } = new Journey<Accepted | null>(this.parts.kernel, caller, signal);
    answer(lot.scale(wayMs.min, wayMs.max), () => {
      if (fault) return reset();
      const found = this.executionOf(jobId);
      if (found) return this.taken(found);
      if (this.isUnderWay(jobId)) throw new Error("it cannot be told yet");
      return null;
    });
    return promise;
  }

  private taken({ number }: Execution): Accepted {
    return { ref: `ref-${number}`, resume: { number } };
  }

  private named(ref: string): Accepted {
    const execution = this.executions.find((one) => this.taken(one).ref === ref);
    if (!execution) throw new Error("there is no such job");
    return this.taken(execution);
  }
}

/** What a job has made: each execution something else. */
export function madeBy({ number, prompt }: Execution): Buffer {
  return outputBytes("wav", `${prompt} ${number}`);
}

/** One request to a provider, whose answer the service may not live to hear. */
class Journey<Answer> {
  readonly promise: Promise<Answer>;
  /** Gives the answer after so long, or throws what is said instead. */
  readonly answer: (ms: number, say: () => Answer) => void;

  constructor(
    private readonly kernel: Kernel,
    caller: Caller,
    signal: AbortSignal,
  ) {
    const { promise, resolve, reject } = withResolvers<Answer>();
    this.promise = promise;
    // Nobody hears it where its caller is gone.
    promise.catch(() => undefined);
    let isOver = false;
    const onAbort = () => {
      isOver = true;
      reject(new Error("the time is out"));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.answer = (ms, say) =>
      this.later(ms, () => {
        if (isOver || !caller.isAlive()) return;
        // The service may die of it, and then nobody has heard it.
        void caller
          .effect("upstream.answer", async () => {})
          .then(() => {
            if (isOver) return;
            isOver = true;
            signal.removeEventListener("abort", onAbort);
            try {
              resolve(say());
            } catch (error) {
              reject(error);
            }
          });
      });
  }

  later(ms: number, act: () => void): void {
    this.kernel.schedule(this.kernel.now() + ms, act);
  }
}

function withResolvers<Value>() {
  let resolve: (value: Value) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<Value>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise, resolve, reject };
}

function reset(): never {
  throw new Error("read ECONNRESET");
}
