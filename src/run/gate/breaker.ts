import type { ServiceClock, Wait } from "../../client/service-clock.js";
import { backoffMs } from "../../core/again.js";
import type { FailureKind } from "../../core/failure.js";
import type { Reason } from "../../core/reason.js";
import { wait } from "../../text/amounts.js";
import { localTime } from "../../text/times.js";
import type { GatePorts } from "./ports.js";

/** Equal failures of a model in a row after which its other items wait. */
const failuresInARowMax = 5;
/**
 * Requests of a model that are refused as wrong, one after another, after which its other items wait. They are free, and say
 * more about their rows than about the model: neighbouring rows may share a fault, such as a prompt that is too long.
 */
const refusalsInARowMax = 20;

/**
 * Models whose items are not submitted for now, because the service no longer knows the model or its items keep failing
 * in the same way. Other models continue. A refusal by moderation says something about a prompt and nothing about the
 * model, so it does not count. Kept in this process only: the next run or resume tries again.
 */
export class Breaker {
  private readonly reasons = new Map<string, string>();
  private readonly rows = new Map<string, { note: string; count: number }>();
  private readonly refusals = new Map<string, { note: string; count: number }>();

  get models(): string[] {
    return [...this.reasons.keys()];
  }

  /** One line for each parked model. */
  get messages(): string[] {
    return [...this.reasons].map(([model, reason]) => `items of ${model} wait: ${reason}`);
  }

  park(model: string, reason: string): void {
    if (!this.reasons.has(model)) this.reasons.set(model, reason);
  }

  /** Its items are tried again. */
  forget(model: string): void {
    this.reasons.delete(model);
    this.rows.delete(model);
    this.refusals.delete(model);
  }

  /** A paid request of the model was accepted. */
  accepted(model: string): void {
    this.refusals.delete(model);
  }

  /** A paid request of the model was refused as wrong. */
  rejected(model: string, kind: FailureKind, note: string): void {
    this.count(this.refusals, model, kind, note, refusalsInARowMax);
  }

  succeeded(model: string): void {
    this.rows.delete(model);
  }

  failed(model: string, kind: FailureKind, note: string): void {
    this.count(this.rows, model, kind, note, failuresInARowMax);
  }

  private count(
    rows: Map<string, { note: string; count: number }>,
    model: string,
    kind: FailureKind,
    note: string,
    most: number,
  ): void {
    if (kind === "moderation") return;
    const row = rows.get(model);
    const count = row?.note === note ? row.count + 1 : 1;
    rows.set(model, { note, count });
    if (count >= most) this.park(model, `${count} failures in a row: ${note}`);
  }
}

/** Since when the service cannot be reached (UTC ms), and why. */
interface Outage {
  since: number;
  reason: string;
}

/** Whether the service can be reached: silence after each failure, longer each time, and how long it has lasted. */
export class Reachability {
  private silence: Wait | null = null;
  private failures = 0;
  private lasts: (() => number) | null = null;
  private outage: Outage | null = null;

  /** An outage is too long after `unreachableMs`. */
  constructor(
    private readonly ports: Pick<GatePorts, "clock" | "log" | "service">,
    private readonly time: ServiceClock,
    private readonly unreachableMs: number,
  ) {}

  /** No request before then (UTC ms): nothing answered, or an answer asked for a pause. */
  get silentUntil(): number {
    return Math.max(this.silence?.until ?? 0, this.ports.service.pausedUntil());
  }

  /** The service answered something. */
  reached(): void {
    if (this.outage !== null) this.ports.log.info({}, "the service can be reached again");
    this.failures = 0;
    this.lasts = null;
    this.silence = null;
    this.outage = null;
  }

  /** Why nothing is sent while the service cannot be reached. */
  get against(): Reason | null {
    if (this.outage === null) return null;
    const from = localTime(this.outage.since).slice("2026-11-20 ".length);
    const text = `service unreachable since ${from} (${this.outage.reason})`;
    return { kind: "outage", text, until: this.silence?.until ?? null };
  }

  /** Whether a request that got no answer was sent while the service could not be reached anyway (UTC ms). */
  wasOut(sentAt: number): boolean {
    return this.outage !== null && this.outage.since < sentAt;
  }

  /** A request found no service, or got no answer. Returns whether this has lasted for too long. */
  missed(reason: string): boolean {
    this.lasts ??= this.time.stopwatch();
    const left = this.unreachableMs - this.lasts();
    // Requests that were in flight together are one failure.
    if (this.silence === null || this.silence.isOver)
      this.silence = this.time.wait(Math.min(backoffMs(++this.failures), Math.max(1, left)));
    if (this.outage === null) {
      this.outage = { since: this.ports.clock.now(), reason };
      const next = wait(this.silence.until - this.outage.since);
      this.ports.log.warn({}, `no connection to the service (${reason}); trying again in ${next}`);
    }
    return left <= 0;
  }
}
