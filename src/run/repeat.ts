import { backoffMs, knowsStill } from "../core/again.js";
import { priceGroup } from "../core/identity.js";
import type { LaneAnswer } from "../core/pace/lanes.js";
import type { Attempt } from "../core/ports/attempt.js";
import type { Item, Run } from "../core/ports/store.js";
import { dayOf } from "../core/quota/quota.js";
import { isOpen } from "../core/stop.js";
import { adoptAnswer, conclusionOf } from "./conclude.js";
import type { Session } from "./ports.js";
import { repeatKey } from "./repeat-key.js";
import { bodyHash, learnPrice, report, requestBody, signOf, writeReceipt } from "./submit.js";
import type { Debt } from "./waiting.js";

/** How often a request is repeated before the key's counters have to settle it. */
const repeatsMax = 12;

/**
 * Requests without an answer, sent again to a service that gives a repeated `Idempotency-Key` the same task: it is one request
 * however often it arrives, so nothing is paid twice. Only an answer with a task counts. Anything else leaves the request to the
 * key's counters, as with every other service.
 */
export class Repeats {
  /** By item: how often in a row it was tried, how often it may have arrived, and when it is tried next (monotonic ms). */
  private readonly tries = new Map<number, { count: number; sent: number; nextAt: number }>();

  constructor(
    private readonly session: Session,
    private readonly debt: () => Debt,
    /** Told how the service does. */
    private readonly answered: (answer: LaneAnswer) => void,
  ) {}

  /**
   * Repeats what is due. `isWaiting`: more answers may come this way, so that the counters can wait. `isNews`: the spend log is to
   * be judged again.
   */
  async step(): Promise<{ isWaiting: boolean; isNews: boolean }> {
    const { store } = this.session.ports;
    let isWaiting = false;
    let isNews = false;
    // A request that never arrived is bought now, so it needs what every purchase needs.
    if (!this.mayBuy) return { isWaiting, isNews };
    for (const { id, state } of await store.interrupted()) {
      if (state !== "unknown") continue;
      const item = await store.item(id);
      const attempt = item.state === "unknown" ? await store.attempt(id) : null;
      const may = attempt && (await this.mayRepeat(item, attempt));
      const done = attempt && may === "yes" ? await this.repeated(item, attempt) : null;
      isNews ||= done === "answered" || done === "judged" || done === "given up" || may === "judged";
      isWaiting ||= done === "waits";
    }
    return { isWaiting, isNews };
  }

  /** Whether an item's request may be repeated, now or later in this execution. */
  async mayRepeatLater(item: Item, attempt: Attempt): Promise<boolean> {
    return this.mayBuyLater && (await this.mayRepeat(item, attempt)) === "yes";
  }

  private get mayBuy(): boolean {
    const { ports, gate } = this.session;
    return ports.service.announced().repeatsMs > 0 && isOpen("submit", gate.stops);
  }

  /** Now, or when the service can be asked anything again. Where only buying has ended, the counters have to do. */
  private get mayBuyLater(): boolean {
    const { ports, gate } = this.session;
    return this.mayBuy || (ports.service.announced().repeatsMs > 0 && !isOpen("poll", gate.stops));
  }

  /** When the next one is due (UTC ms); null if none is. */
  get wakeAt(): number | null {
    const { clock } = this.session.ports;
    const open = [...this.tries.values()].filter(({ sent }) => sent < repeatsMax);
    const next = Math.min(...open.map(({ nextAt }) => nextAt));
    return Number.isFinite(next) ? clock.now() + Math.max(0, next - clock.monotonic()) : null;
  }

  private async mayRepeat(item: Item, attempt: Attempt): Promise<"yes" | "no" | "judged"> {
    const { service, spendLog, store } = this.session.ports;
    const isKnown = knowsStill(service.announced().repeatsMs, attempt.sentAt, service.time.now);
    const isTired = (this.tries.get(item.id)?.sent ?? 0) >= repeatsMax;
    const entry = attempt.spendLogId === null ? null : await spendLog.entry(attempt.spendLogId);
    const { settings, gate } = this.session;
    const isDear = gate.prices.isBelow({ group: priceGroup(item), price: item.price });
    const isOurs = item.runId === settings.run.id && entry?.ownKey === true;
    // It is in the books of the day on which it was sent first, and so is what it may take from a balance to keep.
    const { latest } = service.time.now;
    const isOfToday = attempt.sentAt >= dayOf({ earliest: latest, latest }).from;
    const isCounted = isOfToday || gate.caps.bounds(service.time.now) === null;
    // What is proven not charged is bought anew. Where it was charged, or may have been, only the task is missing.
    if (entry?.verdict === "not_charged") return "judged";
    const mayBe = isOurs && !isDear && isKnown && isCounted && !isTired && attempt.outcome === "unanswered";
    // Its own price was within the caps; what others were charged since may not have been.
    if (mayBe && !(await gate.caps.isPassed(store, settings.run.id, item.model))) return "yes";
    if (!isTired) this.tries.delete(item.id);
    return "no";
  }

  private async repeated(
    item: Item,
    attempt: Attempt,
  ): Promise<"answered" | "judged" | "waits" | "given up"> {
    const { ports, chains, gate } = this.session;
    const { accounts, accountId, fingerprint, lanes, service, receipts, spendLog, store, clock } = ports;
    const entry = attempt.spendLogId;
    const { count, sent, nextAt } = this.tries.get(item.id) ?? {
      count: 0,
      sent: 0,
      nextAt: clock.monotonic(),
    };
    if (clock.monotonic() < nextAt) return "waits";
    const run = await store.run(attempt.runId);
    const recorded = run && (await receipts.requestOf(run, item, attempt));
    // A process that ended before it wrote its receipt has left the body in the row alone.
    const body = recorded ?? requestBody(item);
    // Without the very same body it would be another request.
    const isSame = bodyHash(body) === attempt.bodySha256;
    if (!run || !isSame || !(await chains.canSendAgain(item, JSON.parse(body)))) {
      this.tries.set(item.id, { count, sent: repeatsMax, nextAt });
      return "given up";
    }
    if (recorded === null && !(await this.record(run, item, attempt, body))) {
      this.tries.set(item.id, { count: count + 1, sent, nextAt: clock.monotonic() + backoffMs(count + 1) });
      return "waits";
    }
    const caller = { accountId, fingerprint };
    const lane = lanes.take();
    if (lane === null) return "waits";
    try {
      if (!gate.prices.mayTry(item)) return "waits";
      const { ticket } = await accounts.reserve(caller, "generate", this.debt().grow());
      const isSilent = gate.reach.silentUntil > clock.now();
      // Not before it has its slot: else this and a purchase with the last slot would put each other off for ever.
      if (!ticket || isSilent || !gate.prices.trying(item)) {
        if (ticket) await accounts.release(ticket);
        this.debt().shrink();
        return "waits";
      }
      // From here on no verdict of the counters makes it planned, and then bought beside the repeated request.
      if (entry === null || !(await spendLog.repeats(entry))) {
        await accounts.release(ticket);
        this.debt().shrink();
        gate.prices.refused(item);
        return "judged";
      }
      const sentAt = clock.monotonic();
      const outcome = await service.generate(body, ticket, repeatKey(item, attempt));
      const sign = signOf(outcome);
      if (sign !== null) this.answered({ sentAt, at: clock.monotonic(), sign });
      const answer = conclusionOf(outcome, clock.now());
      gate.requests++;
      await learnPrice(this.session, item, answer);
      if (outcome.kind !== "rejected") await report(this.session, item, outcome);
      if (answer.event === "accepted") {
        await writeReceipt(this.session, run, item, attempt, answer);
        if (await adoptAnswer(ports, item, attempt, answer.outcome, "its request was repeated")) {
          this.tries.delete(item.id);
          gate.settling.found(entry);
          return "answered";
        }
      }
      // Whatever the answer says of this try, an earlier one may still arrive.
      await spendLog.answered(entry, { outcome: "unknown", completeError: false });
      gate.settling.lostAgain();
      // A service that was not reached has not been asked.
      const asked = sent + (outcome.kind === "not_sent" ? 0 : 1);
      const nextTryAt = clock.monotonic() + backoffMs(count + 1);
      this.tries.set(item.id, { count: count + 1, sent: asked, nextAt: nextTryAt });
      return asked < repeatsMax ? "waits" : "given up";
    } finally {
      lane.release();
    }
  }

  /** Writes the intent that is not in the receipts yet. Returns whether the disk has taken it. */
  private record(run: Run, item: Item, attempt: Attempt, body: string): Promise<boolean> {
    const { ports, gate } = this.session;
    return ports.receipts.intent(run, item, attempt, body).then(
      () => true,
      (error: Error) => {
        gate.receiptWritten(error);
        return false;
      },
    );
  }
}
