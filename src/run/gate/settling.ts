import type { Wait } from "../../client/service-clock.js";
import type { ChargeEvidence } from "../../core/charges/readings.js";
import { isNews, type Judgement, reconcile } from "../../core/charges/verdict.js";
import { asBalance } from "../../core/money.js";
import { isLongWait, nextSendAt, type Quota, waitsFor } from "../../core/quota/quota.js";
import type { Reason } from "../../core/reason.js";
import { count } from "../../text/amounts.js";
import { readCounters } from "./balance.js";
import type { Caps } from "./caps.js";
import type { GatePorts, SettlingSettings } from "./ports.js";
import { ReadingSchedule } from "./reading-schedule.js";
import type { Verdicts } from "./verdicts.js";

/**
 * Milliseconds after which the spend log is judged again even if nothing happened here: other workspaces write to it
 * too, and a request that cannot be settled within a day is held.
 */
const againMs = 600_000;
/**
 * A judgement reads every paid request since the last clean reading, which may be a hundred thousand. After a slow
 * judgement, polls wait this many times as long and share the next one.
 */
const restTimes = 20;
/**
 * After so many judgements in vain the next one makes other writers wait. A run on an unlimited plan writes to the spend log
 * fifty times a second, and a judgement of twenty thousand paid requests takes a third of a second.
 */
const overtakenMax = 3;

interface Judged {
  evidence: ChargeEvidence;
  judgement: Judgement;
}

/**
 * Settles unknown outcomes: reads the key's counters when that can prove something, judges the spend log, and has the
 * verdicts given to the items. All evidence is in the spend log, so a new process continues where this one ended.
 */
export class Settling {
  /** Unknown outcomes of the key that have no verdict, from all workspaces. */
  unsettled = 0;
  /** Those of them that this execution lost itself, by their entry in the spend log: only they make submitting wait. */
  private lostHere = new Set<number>();
  private readonly readings: ReadingSchedule;
  /** Until the spend log is judged again even if nothing has happened here. */
  private nextJudgement: Wait | null = null;
  /** Until polls may have the spend log judged again. */
  private restAfterJudging: Wait | null = null;
  /** The spend log has a poll that no judgement has used yet. */
  private owesPolls = false;
  /** How far the spend log went when it was judged last. */
  private judgedSeq: number | null = null;
  /** Entries whose tasks must be polled before every reading is clear. */
  private awaited: readonly number[] = [];

  /** The judgement in progress. */
  private judging: Promise<void> = Promise.resolve();
  /** How many requests this execution has lost, and repeated in vain. */
  private losses = 0;

  constructor(
    private readonly ports: GatePorts,
    private readonly settings: SettlingSettings,
    private readonly caps: Pick<Caps, "takeReading">,
    private readonly verdicts: Pick<Verdicts, "deliver">,
  ) {
    this.readings = new ReadingSchedule(ports, settings.settleMs);
  }

  /** Why nothing may be submitted: a reading comes first, even if it cannot be taken now, or too many requests were lost. */
  get against(): Reason | null {
    const until = this.wakeAt;
    const lost = this.lostHere.size;
    if (this.readings.isNeeded) {
      const text = `submitting is paused until ${count(this.unsettled, "lost answer is", "lost answers are")} settled`;
      return { kind: "counters", text, until };
    }
    if (lost < this.settings.unsettledMax) return null;
    const text = `submitting is paused until ${count(lost, "lost answer is", "lost answers are")} settled`;
    return { kind: "settling", text, until };
  }

  /**
   * Whether settling keeps the run open: until everything is settled if the user wants that, otherwise only for polls that
   * no judgement has used yet, and for a reading that can be taken soon.
   */
  keepsOpen(quota: Quota, now: number): boolean {
    const isSoon = !isLongWait(waitsFor(quota, now), nextSendAt(quota, now) - now);
    return this.unsettled > 0 && (this.settings.wait || this.owesPolls || (this.readings.isDue && isSoon));
  }

  /** When the counters are to be read next (UTC ms); null when no reading could prove anything. */
  get nextReadingAt(): number | null {
    return this.readings.nextAt;
  }

  /** When the next step is due (UTC ms); null if none is. */
  get wakeAt(): number | null {
    const { nextJudgement, restAfterJudging } = this;
    const readingAt = this.readings.wakeAt;
    const times = [
      ...(this.owesPolls && restAfterJudging !== null ? [restAfterJudging.until] : []),
      ...(readingAt === null ? [] : [readingAt]),
      ...(nextJudgement === null ? [] : [nextJudgement.until]),
    ];
    return times.length === 0 ? null : Math.min(...times);
  }

  /** For how long the counters could not be read (ms), in how many readings, and why; null while they can. */
  get trouble(): ReadingSchedule["trouble"] {
    return this.readings.trouble;
  }

  /** Takes the readings that are due, if they need no waiting, and judges them. Returns how many requests were made. */
  async step(): Promise<number> {
    const { readings } = this;
    if (!readings.isDue && this.nextJudgement?.isOver) await this.judgeNews();
    let made = 0;
    // A request that ended long ago needs two readings, and one may follow the other at once.
    while (readings.isDue && (await readings.hasSlot())) made += await this.read();
    return made;
  }

  private async read(): Promise<number> {
    const { ports, readings, caps } = this;
    const reading = await readCounters(ports).catch((error: unknown) => this.failed(error));
    if (reading) {
      readings.succeeded();
      const balance = asBalance(reading.me.credits.balance);
      if (balance !== null) caps.takeReading(balance, reading.mark);
      await this.judge();
      return 1;
    }
    if (reading === null) readings.wasBusy();
    // The process that held the lanes may have read the counters as well.
    await this.judgeNews();
    return 0;
  }

  private failed(error: unknown): undefined {
    this.ports.log.warn({ error: String(error) }, "the key's counters could not be read");
    this.readings.failed(error);
  }

  /** A paid request has ended without an answer: the counters are read before anything else is submitted. */
  lost(entry: number | null): void {
    this.losses++;
    this.unsettled++;
    if (entry !== null) this.lostHere.add(entry);
    this.readings.planNow();
  }

  /** One of them was sent again, in vain: what was read before proves nothing about it. */
  lostAgain(): void {
    this.losses++;
  }

  /** A request that was lost has its answer after all. */
  found(entry: number | null): void {
    if (entry !== null && this.lostHere.delete(entry)) this.unsettled = Math.max(0, this.unsettled - 1);
  }

  /** Judges by what the spend log holds now. One judgement follows the other: both would give verdicts to the same items. */
  judge(): Promise<void> {
    const judged = this.judging.then(() => this.judgeNow());
    this.judging = judged.catch(() => undefined);
    return judged;
  }

  /** `overtaken`: how often others have written to the spend log while it was judged. */
  private async judgeNow(overtaken = 0): Promise<void> {
    const { spendLog, clock } = this.ports;
    const { losses } = this;
    const began = clock.monotonic();
    const seq = await spendLog.seq();
    this.judgedSeq = seq;
    this.owesPolls = false;
    const judged =
      overtaken < overtakenMax ? await this.judgeBeside(seq) : await spendLog.judgeAlone(this.settings);
    if (judged === "overtaken") return this.judgeNow(overtaken + 1);
    if (judged === null) this.lostHere.clear();
    else {
      const { evidence, judgement } = judged;
      this.tell(evidence, judgement);
      // What was lost in the meantime is not in this evidence.
      if (losses !== this.losses) return this.judgeNow(overtaken);
      this.unsettled = judgement.unsettled;
      this.keepUnsettled(evidence, judgement);
      this.readings.plan(judgement.nextReadingAt);
      this.awaited = judgement.awaited;
    }
    this.restAfterJudging = this.time.wait(restTimes * (clock.monotonic() - began));
    this.planJudgement();
    await this.verdicts.deliver(judged !== null);
  }

  /** Judges while others write to the spend log, which makes the judgement invalid. */
  private async judgeBeside(seq: number): Promise<Judged | "overtaken" | null> {
    const { spendLog } = this.ports;
    const evidence = await spendLog.evidence(this.settings);
    if (evidence === null) return null;
    const judgement = reconcile(evidence);
    // Most judgements find nothing new, and storing one costs a sync.
    const isKept = !isNews(judgement, evidence) || (await spendLog.keep(judgement, seq));
    return isKept ? { evidence, judgement } : "overtaken";
  }

  private tell(evidence: ChargeEvidence, { verdicts, foreignAt }: Judgement): void {
    const { log } = this.ports;
    for (const { entry, verdict, evidence: why } of verdicts) log.info({ entry, verdict }, why);
    if (foreignAt !== evidence.foreignAt)
      log.warn(
        {},
        "another machine or program sends requests with this key, so its counters prove nothing for a day. If it is yours, set --share; if not, change the key",
      );
  }

  /** Forgets the lost requests that have a verdict by now. */
  private keepUnsettled({ entries }: ChargeEvidence, { verdicts }: Judgement): void {
    const open = entries.filter(
      ({ id, verdict }) => verdict === null && !verdicts.some(({ entry }) => entry === id),
    );
    this.lostHere = new Set(open.map(({ id }) => id).filter((id) => this.lostHere.has(id)));
  }

  /** Judges if the spend log has new entries; without new entries there is nothing to find. */
  private async judgeNews(): Promise<void> {
    if ((await this.ports.spendLog.seq()) === this.judgedSeq) this.planJudgement();
    else await this.judge();
  }

  private planJudgement(): void {
    this.nextJudgement = this.unsettled > 0 ? this.time.wait(againMs) : null;
  }

  /** Whether a poll of this entry's task is evidence even while the task is open. */
  awaits(entry: number): boolean {
    return this.unsettled > 0 && this.awaited.includes(entry);
  }

  /** A poll was added to the spend log: if something is unsettled, it may be the missing evidence. */
  async polled(): Promise<void> {
    if (this.unsettled === 0) return;
    this.owesPolls = true;
    await this.judgePolls();
  }

  /** Judges with the polls that no judgement has used yet, if the last judgement is long enough ago. */
  async judgePolls(): Promise<void> {
    if (this.owesPolls && this.restAfterJudging?.isOver !== false) await this.judge();
  }

  private get time() {
    return this.ports.service.time;
  }
}
