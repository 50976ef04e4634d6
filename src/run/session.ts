import type { Refusal } from "../api/errors.js";
import { jobFolder } from "../archive/disk/job-folder.js";
import { ServiceError } from "../client/service.js";
import type { Credits } from "../core/money.js";
import type { Parked } from "../core/next/next.js";
import { DurationEstimates } from "../core/pace/paces.js";
import { capStops, type Stop, type StopKind } from "../core/stop.js";
import { Breaker } from "./breaker.js";
import { Caps } from "./caps.js";
import { DiskTrouble } from "./disk-trouble.js";
import type { RunPorts, RunSettings } from "./ports.js";
import { Prices } from "./prices.js";
import { Replacements, Saved } from "./replacements.js";
import { Settling } from "./settling.js";
import { WaitingList } from "./waiting.js";
import { Reachability, Wait } from "./waits.js";

/** Milliseconds between two looks at an account that has run out of credits. */
const balanceMs = 5 * 60_000;
/** Milliseconds until receipts that could not be written are tried again. */
const receiptsMs = 15_000;

/**
 * What one process knows of its run besides the database: why it should stop, whether the service can be reached,
 * and the requests it has made. Nothing in here is needed to resume.
 */
export class Session {
  stops: readonly Stop[] = [];
  readonly reach: Reachability;
  readonly breaker = new Breaker();
  readonly prices = new Prices();
  readonly saved = new Saved();
  readonly settling: Settling;
  readonly replacements = new Replacements();
  readonly caps: Caps;
  readonly paces = new DurationEstimates();
  readonly waiting: WaitingList;
  /** By item: looks for fresh addresses in a row that told nothing. */
  readonly vainLooks = new Map<number, number>();
  requests: number;
  readonly diskTrouble: DiskTrouble;
  /** While the receipts cannot be written: until they are tried again, and why. */
  receiptsRetry: Wait | null = null;
  private receiptsTrouble: string | null = null;
  /** While credits are waited for: until the next look at the balance. */
  balanceLook: Wait | null = null;
  /** Ends the loop's sleep, so that it looks around now. */
  wake: () => void = () => {};

  constructor(
    readonly ports: RunPorts,
    readonly settings: RunSettings,
  ) {
    this.requests = settings.run.requests;
    this.reach = new Reachability(ports.clock);
    this.caps = new Caps(settings);
    this.settling = new Settling(ports, { ...settings.settling, runId: settings.run.id }, this.caps);
    this.diskTrouble = new DiskTrouble(ports, jobFolder(settings.run));
    this.waiting = new WaitingList(ports, settings.run.id);
    if (settings.run.state === "cancelled")
      this.stop("collect", "the run was cancelled; what was submitted before is collected");
  }

  /** A name of its own among the runs of the account: another job of the workspace must not forget what this one owes. */
  get claimant(): string {
    return `${this.ports.workspace} run ${this.settings.run.id}`;
  }

  /** What must not be submitted for now. */
  get parked(): Parked {
    return { models: [...this.breaker.models, ...this.caps.models], prices: this.prices.stopped };
  }

  /** Nothing is bought that could not be kept, or not be paid. */
  get mayBuy(): boolean {
    const mayKeep = this.diskTrouble.reason === null && this.receiptsRetry?.isOver !== false;
    return mayKeep && this.balanceLook === null;
  }

  /** What the disk refuses for now, so that nothing is bought; null where it takes everything. */
  get refusedByDisk(): string | null {
    return this.diskTrouble.reason ?? this.receiptsTrouble;
  }

  stop(kind: StopKind, message: string): void {
    if (this.stopped(kind)) return;
    this.stops = [...this.stops, { kind, message }];
    // The summary tells a person; the log tells when it was.
    this.ports.log.info({ stop: kind }, message);
  }

  stopped(kind: StopKind): boolean {
    return this.stops.some((stop) => stop.kind === kind);
  }

  /** Credits are free again under a cap that was reached, so it closes nothing any more. */
  liftCaps(): void {
    this.stops = this.stops.filter(({ kind }) => !capStops.includes(kind));
    this.ports.log.info({}, "credits are free again under the cap that was reached");
  }

  /** The service answered something. */
  reached(): void {
    this.requests++;
    this.reach.reached();
  }

  /** A request found no service, or no answer. */
  missed(reason: string): void {
    if (this.reach.missed() < this.settings.unreachableMs) return;
    this.stop("unreachable", `the service cannot be reached (${reason})`);
  }

  /** Nothing is submitted before the key's counters were read; where they cannot be, that is not waited for without end. */
  lookAtCounters(): void {
    const { trouble } = this.settling;
    if (trouble === null) return;
    const { error, ms } = trouble;
    if (error instanceof ServiceError && (error.kind === "key" || error.kind === "subscription"))
      this.refused(error.kind, error.message);
    if (ms >= this.settings.unreachableMs)
      this.stop(
        "unread",
        `nothing is submitted before the key's counters were read (${(error as Error).message})`,
      );
  }

  /** The service refused the key, the subscription or the balance. */
  refused(stop: Refusal, detail: string): void {
    if (stop === "key") this.stop("key", `the service refused the API key (${detail})`);
    if (stop === "subscription")
      this.stop("subscription", `the service sees no active subscription (${detail})`);
    if (stop === "credits" && this.settings.onInsufficient === "stop")
      this.stop("credits", `out of credits (${detail})`);
    if (stop === "credits" && this.settings.onInsufficient === "wait") this.waitForCredits(detail);
  }

  /** The balance while credits are waited for (null when it could not be read), and what the next item costs. */
  balanceRead(balance: Credits | null, price: Credits): void {
    const enough = balance !== null && balance >= price;
    this.balanceLook = enough ? null : new Wait(this.ports.clock, balanceMs);
  }

  /** A receipt was written, or could not be: without receipts nothing is bought. */
  receiptWritten(error: Error | null): void {
    // It is tried again and again; the progress says so all the while.
    if (error !== null && this.receiptsTrouble === null) {
      this.ports.log.warn(
        { error: error.message },
        "the receipts cannot be written; nothing is submitted meanwhile",
      );
    }
    this.receiptsTrouble = error === null ? null : `the receipts cannot be written (${error.message})`;
    this.receiptsRetry = error === null ? null : new Wait(this.ports.clock, receiptsMs);
  }

  private waitForCredits(detail: string): void {
    if (this.balanceLook === null) this.ports.log.warn({}, `out of credits (${detail}); waiting for more`);
    this.balanceLook = new Wait(this.ports.clock, balanceMs);
  }
}
