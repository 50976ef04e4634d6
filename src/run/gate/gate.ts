import type { Refusal } from "../../api/errors.js";
import { jobFolder } from "../../archive/disk/names.js";
import type { TaskOutcome } from "../../client/answer.js";
import { ServiceError } from "../../client/service.js";
import type { Wait } from "../../client/service-clock.js";
import { type Credits, plus } from "../../core/money.js";
import { type Decision, type Parked, unsavedMax, type View } from "../../core/next/next.js";
import { isLongWait, promptMs, silenceText } from "../../core/quota/quota.js";
import { plainReason, type Reason, reasonFor } from "../../core/reason.js";
import { capStops, isOpen, type Stop, type StopKind } from "../../core/stop.js";
import { localTime } from "../../text/times.js";
import { Balance } from "./balance.js";
import { Breaker, Reachability } from "./breaker.js";
import { Caps } from "./caps.js";
import { DiskTrouble, ReceiptsTrouble } from "./disk-trouble.js";
import type { GatePorts, GateSettings } from "./ports.js";
import { Prices } from "./prices.js";
import { Settling } from "./settling.js";
import { Verdicts } from "./verdicts.js";

/** Whether anything may be bought now, or the one reason why not. */
export type Answer = { yes: true } | { yes: false; reason: Reason };

/** Which items may be bought, and how far the credits reach. */
export interface Terms {
  parked: Parked;
  /** Credits that are spent or may turn out to be spent: charged, in flight, unknown, held. */
  committed: Credits;
  /** The most that may be committed, or null. */
  cap: Credits | null;
  /** What models with their own cap may still cost; other models are left out. */
  modelBudgets: ReadonlyMap<string, Credits>;
}

/**
 * May the run buy now? The gate judges the run as a whole: stops, caps, prices, parked models, the disk, the receipts, the
 * balance, and unanswered requests that are being settled. The loop asks it once in each turn, and the steps report to it
 * what they meet. A resume needs nothing of this state.
 *
 * A paid request has to pass three more places. `next` buys nothing while `unsavedMax` finished tasks are not archived;
 * the loop's `begin` needs a free lane and a slot of the quota; and `submit` needs the item's inputs (chains, publishing)
 * and, with bounds that other runs share, `intendWithin` of the spend log.
 */
export class Gate {
  stops: readonly Stop[] = [];
  readonly breaker = new Breaker();
  readonly prices = new Prices();
  /** Models whose queue at the service is full. */
  private readonly resting = new Map<string, Wait>();
  readonly caps: Caps;
  readonly settling: Settling;
  readonly verdicts: Verdicts;
  /** Items whose request was refused for lack of credits, though the balance covered it right after. */
  readonly doubted = new Set<number>();
  readonly disk: DiskTrouble;
  readonly reach: Reachability;
  /** Requests that were made for the run, in this execution and before it. */
  requests: number;
  private readonly receipts: ReceiptsTrouble;
  private readonly balance: Balance;

  constructor(
    private readonly ports: GatePorts,
    private readonly settings: GateSettings,
  ) {
    const { run } = settings;
    this.requests = run.requests;
    const { time } = ports.service;
    this.reach = new Reachability(ports, time, settings.unreachableMs);
    this.caps = new Caps(settings);
    this.verdicts = new Verdicts(ports, run.id, settings.settling.orphanCredits, ({ model }, note) =>
      this.breaker.failed(model, "provider", note),
    );
    this.settling = new Settling(ports, settings.settling, this.caps, this.verdicts);
    this.disk = new DiskTrouble(ports, time, jobFolder(run));
    this.receipts = new ReceiptsTrouble(ports.log, time);
    this.balance = new Balance(ports, run.id, this.caps, () => this.reached());
    if (run.state === "cancelled")
      this.stop("collect", "the run was cancelled; what was submitted before is collected");
  }

  /**
   * Which items may be bought at most, by the current records and by the items in `beginning`, whose submits have
   * started but may not be recorded yet. A cap that was reached is lifted if it leaves more room now.
   */
  async terms(beginning: readonly number[]): Promise<Terms> {
    const { caps, ports, settings } = this;
    const { store, accounts, accountId, service } = ports;
    const modelBudgets = await caps.modelBudgets(store, settings.run.id, beginning);
    const spending = await store.spending(settings.run.id, { beginning });
    const committed = plus(spending.charged, spending.pending);
    await caps.updateKept(accounts, accountId, committed);
    await caps.updateDay(accounts, accountId, { now: service.time.now, committed });
    if (caps.liftReached(committed)) this.liftCaps();
    return { parked: this.parked, committed, cap: caps.cap, modelBudgets };
  }

  /** May anything be bought now? `counts` are the run's items by state. */
  async mayBuy(counts: View["counts"]): Promise<Answer> {
    // With no item to save, no save would ever show that the disk works again.
    if (counts.ready === 0) this.disk.over();
    await this.disk.check(this.wantsToBuy(counts));
    const reason = this.reasonAgainst();
    return reason === null ? { yes: true } : { yes: false, reason };
  }

  private reasonAgainst(): Reason | null {
    const { disk, receipts, balance, settling } = this;
    const stop = this.stops.find((one) => !isOpen("submit", [one]));
    if (stop) return reasonFor("stopping", stop.message, null);
    return disk.against ?? receipts.against ?? balance.against ?? settling.against;
  }

  /** Why nothing is bought or sent now, the most important reason first; null if something may be. */
  reason({ counts, now, quota }: View, { shortage, isIdle }: Decision): Reason | null {
    const { disk, reach, stops } = this;
    const against = this.reasonAgainst();
    if (against?.kind === "stopping") return against;
    const trouble = disk.against ?? reach.against;
    if (trouble !== null) return trouble;
    if (against !== null && this.wantsToBuy(counts)) {
      // A check that is made at once needs no explanation.
      const isOver = against.until !== null && against.until <= now;
      if (!isOver) return against;
    }
    if (counts.ready >= unsavedMax && counts.planned > 0 && isOpen("submit", stops))
      return { kind: "saving", text: `${counts.ready} finished tasks are saved first`, until: null };
    if (shortage === null || shortage.until <= now) return null;
    // In the first minutes of an account, requests leave one after the other.
    const isBrief = shortage.kind === "pacing" && quota.pacing.spacingMs === 0;
    if (isBrief && (!isIdle || shortage.until - now <= promptMs)) return null;
    return plainReason(shortage.kind, shortage.until);
  }

  wantsToBuy(counts: View["counts"]): boolean {
    return counts.planned > 0 && isOpen("submit", this.stops);
  }

  /** The service takes no more of a model for so long (ms). */
  rest(model: string, ms: number): void {
    this.resting.set(model, this.ports.service.time.wait(ms));
  }

  /** Until when the service takes no more of a model (UTC ms); null if it does. */
  restsUntil(model: string): number | null {
    const rest = this.resting.get(model);
    return rest === undefined || rest.isOver ? null : rest.until;
  }

  /** Models and prices that must not be submitted for now. */
  get parked(): Parked {
    return { models: [...this.breaker.models, ...this.caps.models], prices: this.prices.stopped };
  }

  /** Why the archive accepts no files at present; null if it accepts all files. */
  get refusedByDisk(): string | null {
    return this.disk.reason ?? this.receipts.reason;
  }

  /** When the gate's answer may change by itself (UTC ms). */
  get wakeTimes(): number[] {
    const { balance, receipts, disk, settling, reach, settings } = this;
    const times = [balance.wakeAt, receipts.wakeAt, disk.wakeAt, settling.wakeAt, settings.deadline];
    return [...times.filter((at) => at !== null), reach.silentUntil];
  }

  /** Reads the balance if the run waits for credits. */
  readBalance(): Promise<void> {
    return this.balance.readIfDue(this.parked);
  }

  /** Reads the key's counters if that can settle something; never while a paid request of this key is in flight. */
  async settleUnknowns(isSubmitting: boolean): Promise<void> {
    await this.settling.judgePolls();
    const isSilent = this.reach.silentUntil > this.ports.clock.now();
    if (isSubmitting || isSilent || !isOpen("poll", this.stops)) return;
    const made = await this.settling.step();
    this.requests += made;
    if (made > 0) this.reach.reached();
  }

  /**
   * Decides, from the whole state of a turn, what ends buying. Returns whether anything has changed, so that a new turn
   * is due.
   */
  async reconsider(view: View, decision: Decision): Promise<boolean> {
    const { caps, balance } = this;
    const isCapped = endsAtCap(view, decision);
    if (isCapped && (await balance.recheck(view.committed, view.quota))) return true;
    const before = this.stops.length;
    this.stopAtDeadline(view.now);
    this.stopForLongWait(view, decision);
    if (this.wantsToBuy(view.counts) || view.awaitsSettling) this.stopUnread();
    if (isCapped) {
      const { kind, message } = caps.reached(view.committed);
      this.stop(kind, message);
    }
    if (this.stops.length > before) return true;
    return caps.wait(decision.cappedModels, view.modelBudgets ?? new Map());
  }

  stop(kind: StopKind, message: string): void {
    if (this.stopped(kind)) return;
    this.stops = [...this.stops, { kind, message }];
    // The summary shows the reason; the log shows the time.
    this.ports.log.info({ stop: kind }, message);
  }

  stopped(kind: StopKind): boolean {
    return this.stops.some((stop) => stop.kind === kind);
  }

  /** The service answered something. */
  reached(): void {
    this.requests++;
    this.reach.reached();
  }

  /** A request found no service, or got no answer. */
  missed(reason: string): void {
    if (this.reach.missed(reason)) this.stop("unreachable", `the service cannot be reached (${reason})`);
  }

  /** What a poll says about the service, whatever it says about its task. */
  polled(outcome: TaskOutcome): void {
    if (outcome.kind === "unclear" && !outcome.reached) this.missed(outcome.reason);
    else this.reached();
    if (outcome.kind === "refused")
      this.refused(outcome.stop, [outcome.code, outcome.message].filter(Boolean).join(": "));
  }

  /** The service refused the key, the subscription or the balance. */
  refused(stop: Refusal, detail: string): void {
    if (stop === "key") this.stop("key", `the service refused the API key (${detail})`);
    if (stop === "subscription")
      this.stop("subscription", `the service sees no active subscription (${detail})`);
    if (stop !== "credits") return;
    if (this.settings.run.options.onInsufficient === "wait") this.balance.awaitCredits(detail);
    else this.stop("credits", `out of credits (${detail})`);
  }

  /** A receipt was written, or could not be: without receipts nothing is bought. */
  receiptWritten(error: Error | null): void {
    this.receipts.written(error);
  }

  private liftCaps(): void {
    this.stops = this.stops.filter(({ kind }) => !capStops.includes(kind));
    this.ports.log.info({}, "credits are free again under the cap that was reached");
  }

  private stopAtDeadline(now: number): void {
    const { deadline } = this.settings;
    if (deadline !== null && now >= deadline)
      this.stop("time", "the time that --until or --max-duration allows is over");
  }

  /** Ends the run if it would have to wait for hours, unless the user wants it to wait. */
  private stopForLongWait({ quota, now }: View, { shortage, isIdle }: Decision): void {
    if (this.settings.run.options.onDailyLimit === "wait" || shortage === null || !isIdle) return;
    const silentUntil = quota.blockedUntil ?? now;
    if (!isLongWait(shortage.kind, silentUntil - now)) return;
    const until = localTime(quota.day.nextReleaseAt ?? now);
    if (shortage.kind === "service") this.stop("silence", silenceText(silentUntil));
    else if (shortage.kind === "day") this.stop("day", `the day's requests are used up until ${until}`);
    else
      this.stop(
        "reserve",
        `today's request limit (${quota.day.limit}) is nearly used up, and the rest is kept for open tasks; new requests from ${until}`,
      );
  }

  /**
   * Nothing is submitted before the key's counters were read. If they cannot be read, the run does not wait forever.
   */
  private stopUnread(): void {
    const { trouble } = this.settling;
    if (trouble === null) return;
    const { error, failures, ms } = trouble;
    if (error instanceof ServiceError && (error.kind === "key" || error.kind === "subscription"))
      this.refused(error.kind, error.message);
    // A single failure may be a pause that the service has asked for.
    if (failures > 1 && ms >= this.settings.unreachableMs)
      this.stop(
        "unread",
        `the key's counters cannot be read (${(error as Error).message}), and nothing is submitted without them`,
      );
  }
}

/**
 * Whether a cap ends submitting. A failed task frees its price, and so does an unknown request that was not charged; an
 * item that waits for a slot may still fit. So a cap ends submitting only when nothing is open and nothing waits.
 */
function endsAtCap({ counts, busy, awaitsSettling }: View, { capped, steps, shortage }: Decision): boolean {
  const open = counts.submitting + counts.processing + busy.size + steps.length;
  return capped && open === 0 && !awaitsSettling && shortage === null;
}
