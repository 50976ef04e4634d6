import { backoffMs, triesMax } from "../../core/again.js";
import type { Verdict } from "../../core/charges/readings.js";
import { unreadBefore } from "../../core/charges/verdict.js";
import { type Credits, inCredits, plus } from "../../core/money.js";
import type { Attempt } from "../../core/ports/attempt.js";
import type { Item } from "../../core/ports/store.js";
import type { GatePorts } from "./ports.js";

/**
 * Gives this workspace's items the verdicts that are in the spend log. An item whose request was not charged is planned
 * again; it fails if too many requests in a row were lost. Any other item is held, and submitted again as far as
 * --orphan-credits reaches.
 */
export class Verdicts {
  /** Whether verdicts were withheld at the last delivery, because requests may be repeated. */
  private areWithheld = false;
  private mayRepeat: (item: Item, attempt: Attempt) => Promise<boolean> = async () => false;

  constructor(
    private readonly ports: Pick<GatePorts, "store" | "spendLog" | "clock">,
    private readonly runId: number,
    private readonly orphanCredits: Credits,
    /** Told of an item that has failed, because too many of its requests in a row were lost. */
    private readonly onGivenUp: (item: Item, note: string) => void,
  ) {}

  /** Whether an item has no verdict yet because its request may be repeated. */
  get awaitsRepeats(): boolean {
    return this.areWithheld;
  }

  /**
   * Withholds the verdict on a request while it may be repeated, at a service that then gives it the same task. Call it
   * before the first judgement.
   */
  withholdWhile(mayRepeat: (item: Item, attempt: Attempt) => Promise<boolean>): void {
    this.mayRepeat = mayRepeat;
  }

  /** Gives each unknown item its verdict, if there is one. `isRead`: the spend log has readings to judge by. */
  async deliver(isRead: boolean): Promise<void> {
    const { store } = this.ports;
    const unknown = (await store.interrupted()).filter((item) => item.state === "unknown");
    this.areWithheld = false;
    for (const item of unknown) {
      const attempt = await store.attempt(item.id);
      if (!attempt) throw new Error(`item ${item.id} is unknown without an attempt`);
      const found = await this.verdictOn(attempt);
      // A repeated request brings the task; any other verdict would hold the item without it.
      if (found?.verdict !== "not_charged" && (await this.mayRepeat(item, attempt))) this.areWithheld = true;
      else if (found) await this.give(item, found.verdict, found.evidence);
      // Without a reading before the request, the next one proves nothing about it: it would only be the first to compare with.
      else if (!isRead) await this.give(item, "undecided", unreadBefore);
    }
  }

  private async verdictOn({ spendLogId }: Attempt): Promise<{ verdict: Verdict; evidence: string } | null> {
    const entry = spendLogId === null ? null : await this.ports.spendLog.entry(spendLogId);
    if (!entry) return { verdict: "undecided", evidence: "it is not in the account's spend log" };
    if (entry.verdict !== null) return { verdict: entry.verdict, evidence: entry.evidence ?? "" };
    return entry.ownKey ? null : { verdict: "undecided", evidence: "it was sent with another key" };
  }

  private async give(item: Item, verdict: Verdict, evidence: string): Promise<void> {
    const { store, clock } = this.ports;
    const note = noteOn(item, verdict, evidence);
    if (verdict !== "not_charged") {
      await store.giveVerdict(item.id, verdict, note);
      if (item.runId === this.runId) await this.resubmit(item);
      return;
    }
    const lost = await store.lostInARow(item.id);
    if (lost < triesMax) {
      await store.giveVerdict(item.id, verdict, note, { nextAt: clock.now() + backoffMs(lost) });
      return;
    }
    const last = `${lost} requests in a row were lost and none was charged; the last: ${item.note ?? "no answer"}`;
    await store.giveVerdict(item.id, verdict, last, { isGivenUp: true });
    this.onGivenUp(item, item.note ?? "no answer");
  }

  /** Submits again what an earlier execution left held for a lost answer, as far as --orphan-credits reaches. */
  async resubmitHeld(): Promise<void> {
    const { store } = this.ports;
    if (this.orphanCredits === 0) return;
    for (const item of await store.items(this.runId, ["held"])) {
      const attempt = await store.attempt(item.id);
      // If a person has found the task in the meantime, the request has an answer, whatever its verdict was.
      const isLost = attempt?.outcome === "unanswered" && attempt.verdict !== null;
      if (isLost && attempt.verdict !== "not_charged") await this.resubmit(item);
    }
  }

  /**
   * Submits an item again if the credits for that cover it. A free item is always covered, so it is submitted again only if some
   * credits are allowed at all, and no more than `triesMax` times in a row.
   */
  private async resubmit(item: Item): Promise<void> {
    const { store, clock } = this.ports;
    const { orphanCredits } = this;
    if (item.vanished || orphanCredits === 0) return;
    const lost = await store.lostInARow(item.id);
    const spent = await store.resubmitted(this.runId);
    if (lost >= triesMax || plus(spent, item.price) > orphanCredits) return;
    await store.apply(item.id, "resubmit", { nextAt: clock.now() + backoffMs(lost) });
  }
}

function noteOn(item: Item, verdict: Verdict, evidence: string): string {
  const lost = item.note ?? "no answer";
  if (verdict === "charged") return `charged, but its task id was lost (${lost}); ${evidence}`;
  return verdict === "undecided"
    ? `${inCredits(item.price)} may have been charged (${lost}); ${evidence}`
    : `not charged (${lost}); ${evidence}`;
}
