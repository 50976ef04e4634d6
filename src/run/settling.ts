import { type Credits, plus } from "../core/money.js";
import { freePlaces, nextSendAt } from "../core/quota.js";
import type { ReconcileSettings, Verdict } from "../core/readings.js";
import { isNews, reconcile } from "../core/reconcile.js";
import type { Attempt, Item } from "../core/store.js";
import { readAccount } from "./account-reading.js";
import type { RunPorts } from "./ports.js";

export interface SettlingSettings extends ReconcileSettings {
  runId: number;
  /** Unknown outcomes without a verdict at which submitting waits. */
  unsettledMax: number;
  /** Whether the run stays open until every unknown outcome is settled. */
  wait: boolean;
  /** Credits that may be spent again, by themselves, on items whose first charge came to nothing. */
  orphanCredits: Credits;
}

/** Milliseconds until a reading is tried again that could not be taken. */
const retryMs = 30_000;
/**
 * Milliseconds after which the books are judged anew though nothing happened here: other workspaces write in them too,
 * and what cannot be found out within a day is held.
 */
const againMs = 600_000;

/**
 * Settles unknown outcomes: asks the service for the key's counters when that can tell something, has them judged, and
 * gives the verdicts to the items. What it knows is in the books; a new process goes on where this one ended.
 */
export class Settling {
  /** Unknown outcomes of the key that have no verdict yet, from whatever workspace. */
  unsettled = 0;
  /** When the counters are to be read next (UTC ms); null when no reading could tell anything. */
  nextReadingAt: number | null = null;
  private retryAt = 0;
  /** When there will be a place for a reading that is due. */
  private placeAt = 0;
  private againAt: number | null = null;
  /** How far the books went when they were judged last. */
  private judgedSeq: number | null = null;
  /** Entries at whose tasks somebody has to look before every reading is clear. */
  private awaited: readonly number[] = [];

  constructor(
    private readonly ports: RunPorts,
    private readonly settings: SettlingSettings,
  ) {}

  /** Whether nothing may be submitted: a reading is due first, or too much is unsettled. */
  holdsBack(now: number): boolean {
    return this.isDue(now) || this.unsettled >= this.settings.unsettledMax;
  }

  /** Whether the run stays open for it: to the end where that is wanted, else for a reading that can be had at once. */
  keepsOpen(now: number): boolean {
    return this.unsettled > 0 && (this.settings.wait || this.isDue(now));
  }

  /** When something is to be done next (UTC ms); null when nothing is. */
  get wakeAt(): number | null {
    const { readingAt, againAt, placeAt } = this;
    const times = [
      ...(readingAt === null ? [] : [Math.max(readingAt, placeAt)]),
      ...(againAt ? [againAt] : []),
    ];
    return times.length === 0 ? null : Math.min(...times);
  }

  /** Takes a reading that is due, if it can be had without waiting, and judges. Returns the requests that it made. */
  async step(now: number): Promise<number> {
    const { ports } = this;
    if (!this.isDue(now)) {
      // A time further ahead was set before the clock was put back.
      if (this.againAt !== null && (this.againAt <= now || this.againAt > now + againMs))
        await this.judgeNews();
      return 0;
    }
    const quota = await ports.accounts.quota(ports.accountId);
    if (freePlaces(quota, now) < 1) {
      this.placeAt = nextSendAt(quota, now);
      return 0;
    }
    const read = await readAccount(ports).catch((error: unknown) => {
      ports.log.warn({ error: String(error) }, "the key's counters could not be read");
      return null;
    });
    if (!read?.booked) this.retryAt = ports.clock.now() + (read ? 1_000 : retryMs);
    await this.judge();
    return read ? 1 : 0;
  }

  /** A paid request has ended without an answer: the counters are read before anything else is submitted. */
  lost(): void {
    this.unsettled++;
    this.nextReadingAt = this.ports.clock.now();
  }

  /** Judges by what the books hold now. */
  async judge(): Promise<void> {
    const { books, log } = this.ports;
    this.judgedSeq = await books.seq();
    const evidence = await books.evidence(this.settings);
    if (evidence) {
      const judgement = reconcile(evidence);
      // Most judgements find nothing new, and each that is kept is a write that is synced.
      if (isNews(judgement, evidence)) await books.keep(judgement);
      this.unsettled = judgement.unsettled;
      this.nextReadingAt = judgement.nextReadingAt;
      this.awaited = judgement.awaited;
      for (const { entry, verdict, evidence: why } of judgement.verdicts) log.info({ entry, verdict }, why);
      if (judgement.foreignAt !== evidence.foreignAt) log.warn({}, "the key is used from elsewhere as well");
    }
    this.planNext();
    await this.deliver();
  }

  /** Judges if anything was written in the books since: without news there is nothing to find. */
  private async judgeNews(): Promise<void> {
    if ((await this.ports.books.seq()) === this.judgedSeq) this.planNext();
    else await this.judge();
  }

  private planNext(): void {
    this.againAt = this.unsettled > 0 ? this.ports.clock.now() + againMs : null;
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
  private async deliver(): Promise<void> {
    const { store } = this.ports;
    const unknown = (await store.interrupted()).filter((item) => item.state === "unknown");
    for (const item of unknown) {
      const attempt = await store.attempt(item.id);
      if (!attempt) throw new Error(`item ${item.id} is unknown without an attempt`);
      const found = await this.verdictOn(attempt);
      if (found) await this.give(item, found.verdict, found.evidence);
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
    const { runId, orphanCredits } = this.settings;
    await store.giveVerdict(item.id, verdict, noteOn(item, verdict, evidence));
    if (verdict === "not_charged" || orphanCredits === 0 || item.runId !== runId) return;
    const spent = await store.resubmitted(runId);
    if (plus(spent, item.price) <= orphanCredits) await store.apply(item.id, "resubmit", { nextAt: 0 });
  }

  private get readingAt(): number | null {
    return this.nextReadingAt === null ? null : Math.max(this.nextReadingAt, this.retryAt);
  }

  private isDue(now: number): boolean {
    return this.readingAt !== null && this.readingAt <= now;
  }
}

function noteOn(item: Item, verdict: Verdict, evidence: string): string {
  const lost = item.note ?? "no answer";
  if (verdict === "charged") return `charged, but its task id was lost (${lost}); ${evidence}`;
  return verdict === "undecided"
    ? `perhaps charged: ${lost}; ${evidence}`
    : `not charged (${lost}); ${evidence}`;
}
