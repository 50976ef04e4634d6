import type { Verdict } from "../../core/charges/readings.js";
import { isNews, reconcile, unreadBefore } from "../../core/charges/verdict.js";
import { balanceTold, plus } from "../../core/money.js";
import type { Attempt } from "../../core/ports/attempt.js";
import type { Item } from "../../core/ports/store.js";
import { dayMs, freeSlots, isLongWait, nextSendAt, type Quota, waitsFor } from "../../core/quota/quota.js";
import { readCounters } from "./account-reading.js";
import type { Caps } from "./caps.js";
import type { GatePorts, SettlingSettings } from "./ports.js";
import { Wait } from "./waits.js";

/** Requests without an answer that submitting waits for, and when the next thing is found out about them (UTC ms). */
export interface SubmitPause {
  unsettled: number;
  until: number;
}

/** Milliseconds until it is looked again whether the last POST of another process has ended. */
const gateMs = 1_000;
/** Milliseconds until counters are read again that could not be read: doubling, because each try costs requests. */
const retryMs = 30_000;
const retryMsMax = 60 * 60_000;
/**
 * Milliseconds after which the books are judged anew though nothing happened here: other workspaces write in them too,
 * and what cannot be found out within a day is held.
 */
const againMs = 600_000;
/** How much further ahead than it can be (ms) a reading must lie to tell that the clock was put back. */
const skewMs = 60_000;

/** Readings in a row that failed: since when (monotonic ms), how many, and why the last one did. */
interface Unread {
  since: number;
  failures: number;
  error: unknown;
}

/**
 * Settles unknown outcomes: asks the service for the key's counters when that can tell something, has them judged, and
 * gives the verdicts to the items. What it knows is in the books; a new process goes on where this one ended.
 */
export class Settling {
  /** Unknown outcomes of the key that have no verdict yet, from whatever workspace. */
  unsettled = 0;
  /** Until the counters are to be read next; null when no reading could tell anything. */
  private reading: Wait | null = null;
  /** Until a reading that is due and could not be taken is tried again. */
  private retry: Wait | null = null;
  /** Until there is a place for a reading that is due. */
  private place: Wait | null = null;
  private unread: Unread | null = null;
  private again: Wait | null = null;
  /** How far the books went when they were judged last. */
  private judgedSeq: number | null = null;
  /** Entries at whose tasks somebody has to look before every reading is clear. */
  private awaited: readonly number[] = [];

  constructor(
    private readonly ports: GatePorts,
    private readonly settings: SettlingSettings,
    private readonly runId: number,
    private readonly caps: Pick<Caps, "takeReading">,
  ) {}

  /** Why nothing may be submitted: a reading comes first, even if it cannot be taken now, or too much is unsettled. */
  get reasonAgainst(): string | null {
    if (this.reading?.isOver) return "the key's counters are read before anything else is submitted";
    if (this.unsettled < this.settings.unsettledMax) return null;
    return `${this.unsettled} unanswered requests are being settled`;
  }

  /** What submitting waits for, and when that goes on (UTC ms); null while it waits for nothing that takes its time. */
  get hold(): SubmitPause | null {
    const until = this.reasonAgainst !== null ? this.wakeAt : null;
    return until === null || until <= this.ports.clock.now() ? null : { unsettled: this.unsettled, until };
  }

  /** Whether the run stays open for it: to the end where that is wanted, else for a reading that can be had soon. */
  keepsOpen(quota: Quota, now: number): boolean {
    const isSoon = !isLongWait(waitsFor(quota, now), nextSendAt(quota, now) - now);
    return this.unsettled > 0 && (this.settings.wait || (this.isDue && isSoon));
  }

  /** When the counters are to be read next (UTC ms); null when no reading could tell anything. */
  get nextReadingAt(): number | null {
    return this.reading === null ? null : Math.max(this.reading.until, this.retry?.until ?? 0);
  }

  /** When something is to be done next (UTC ms); null when nothing is. */
  get wakeAt(): number | null {
    const { nextReadingAt, place, again } = this;
    const times = [
      ...(nextReadingAt === null ? [] : [Math.max(nextReadingAt, place?.until ?? 0)]),
      ...(again === null ? [] : [again.until]),
    ];
    return times.length === 0 ? null : Math.min(...times);
  }

  /** For how long the counters could not be read (ms), and why; null while they can. */
  get trouble(): { ms: number; error: unknown } | null {
    if (this.unread === null) return null;
    return { ms: this.ports.clock.monotonic() - this.unread.since, error: this.unread.error };
  }

  /** Takes the readings that are due, if they can be had without waiting, and judges. Returns the requests that it made. */
  async step(): Promise<number> {
    if (!this.isDue && this.again?.isOver) await this.judgeNews();
    let made = 0;
    // What has ended long ago wants two of them, and they may follow one another.
    while (this.isDue && (await this.hasPlace())) made += await this.read();
    return made;
  }

  private async hasPlace(): Promise<boolean> {
    const { accounts, accountId, clock } = this.ports;
    const quota = await accounts.quota(accountId);
    const now = clock.now();
    const isFree = freeSlots(quota, now) >= 1;
    this.place = isFree ? null : new Wait(clock, nextSendAt(quota, now) - now);
    return isFree;
  }

  private async read(): Promise<number> {
    const { ports, caps } = this;
    const reading = await readCounters(ports).catch((error: unknown) => this.failed(error));
    if (reading) {
      this.unread = null;
      this.retry = null;
      const balance = balanceTold(reading.me.credits.balance);
      if (balance !== null) caps.takeReading(balance, reading.mark);
      await this.judge();
      return 1;
    }
    if (reading === null) this.retry = new Wait(ports.clock, gateMs);
    // Whoever had the gate may have read the counters as well.
    await this.judgeNews();
    return 0;
  }

  private failed(error: unknown): undefined {
    const { clock, log } = this.ports;
    log.warn({ error: String(error) }, "the key's counters could not be read");
    const { since, failures } = this.unread ?? { since: clock.monotonic(), failures: 0 };
    this.unread = { since, failures: failures + 1, error };
    this.retry = new Wait(clock, Math.min(retryMsMax, retryMs * 2 ** failures));
  }

  /** A paid request has ended without an answer: the counters are read before anything else is submitted. */
  lost(): void {
    this.unsettled++;
    this.reading = new Wait(this.ports.clock, 0);
  }

  /** Judges by what the books hold now. */
  async judge(): Promise<void> {
    const { books, log } = this.ports;
    const seq = await books.seq();
    this.judgedSeq = seq;
    const evidence = await books.evidence(this.settings);
    if (evidence) {
      const judgement = reconcile(evidence);
      // Most judgements find nothing new, and each that is kept is a write that is synced.
      if (isNews(judgement, evidence) && !(await books.keep(judgement, seq))) return this.judge();
      this.unsettled = judgement.unsettled;
      this.readAt(judgement.nextReadingAt);
      this.awaited = judgement.awaited;
      for (const { entry, verdict, evidence: why } of judgement.verdicts) log.info({ entry, verdict }, why);
      if (judgement.foreignAt !== evidence.foreignAt) log.warn({}, "the key is used from elsewhere as well");
    }
    this.planNext();
    await this.deliver(evidence !== null);
  }

  /** Judges if anything was written in the books since: without news there is nothing to find. */
  private async judgeNews(): Promise<void> {
    if ((await this.ports.books.seq()) === this.judgedSeq) this.planNext();
    else await this.judge();
  }

  /** Takes a reading down for then (UTC ms). */
  private readAt(at: number | null): void {
    const { clock } = this.ports;
    const ms = (at ?? 0) - clock.now();
    // None is wanted further ahead, so this one was reckoned before the clock was put back.
    const msMax = Math.max(dayMs, ...this.settings.settleMs) + skewMs;
    this.reading = at === null ? null : new Wait(clock, ms > msMax ? againMs : ms);
    if (this.reading?.isOver !== true) this.unread = null;
  }

  private planNext(): void {
    this.again = this.unsettled > 0 ? new Wait(this.ports.clock, againMs) : null;
  }

  /** Whether a look at this entry's task tells something, though the task is still open. */
  awaits(entry: number): boolean {
    return this.unsettled > 0 && this.awaited.includes(entry);
  }

  /** A look at a task went into the books: where something is unsettled, that may be what was missing. */
  async looked(): Promise<void> {
    if (this.unsettled > 0) await this.judge();
  }

  /** Gives this workspace's items the verdicts that are in the books. */
  private async deliver(isRead: boolean): Promise<void> {
    const { store } = this.ports;
    const unknown = (await store.interrupted()).filter((item) => item.state === "unknown");
    for (const item of unknown) {
      const attempt = await store.attempt(item.id);
      if (!attempt) throw new Error(`item ${item.id} is unknown without an attempt`);
      const found = await this.verdictOn(attempt);
      if (found) await this.give(item, found.verdict, found.evidence);
      // The first reading would only begin the books, and a service may never tell one.
      else if (!isRead) await this.give(item, "undecided", unreadBefore);
    }
  }

  private async verdictOn({ bookEntry }: Attempt): Promise<{ verdict: Verdict; evidence: string } | null> {
    const entry = bookEntry === null ? null : await this.ports.books.entry(bookEntry);
    if (!entry) return { verdict: "undecided", evidence: "it is not in the account's books" };
    if (entry.verdict !== null) return { verdict: entry.verdict, evidence: entry.evidence ?? "" };
    return entry.ownKey ? null : { verdict: "undecided", evidence: "it was sent with another key" };
  }

  private async give(item: Item, verdict: Verdict, evidence: string): Promise<void> {
    const { store } = this.ports;
    const { runId } = this;
    const { orphanCredits } = this.settings;
    await store.giveVerdict(item.id, verdict, noteOn(item, verdict, evidence));
    if (verdict === "not_charged" || orphanCredits === 0 || item.runId !== runId) return;
    const spent = await store.resubmitted(runId);
    if (plus(spent, item.price) <= orphanCredits) await store.apply(item.id, "resubmit", { nextAt: 0 });
  }

  /** Whether a reading is to be tried now. */
  private get isDue(): boolean {
    return this.reading?.isOver === true && this.retry?.isOver !== false;
  }
}

function noteOn(item: Item, verdict: Verdict, evidence: string): string {
  const lost = item.note ?? "no answer";
  if (verdict === "charged") return `charged, but its task id was lost (${lost}); ${evidence}`;
  return verdict === "undecided"
    ? `perhaps charged: ${lost}; ${evidence}`
    : `not charged (${lost}); ${evidence}`;
}
