import type { TaskOutcome } from "../client/answer.js";
import type { Wait } from "../client/service-clock.js";
import { backoffMs, triesMax } from "../core/again.js";
import { taskFailureKind } from "../core/failure.js";
import { priceGroup } from "../core/identity.js";
import type { DurationEstimates } from "../core/pace/pace.js";
import {
  fetchBy,
  type Overdue,
  overdueInterval,
  pollInterval,
  pollSpacing,
  queuedInterval,
  windowPassed,
} from "../core/pace/poll.js";
import type { Attempt } from "../core/ports/attempt.js";
import type { Ticket } from "../core/ports/send.js";
import type { LoggedPoll } from "../core/ports/spend-log.js";
import type { Addresses, Item } from "../core/ports/store.js";
import { blameFor } from "./blame.js";
import { loggedEnd } from "./conclude.js";
import { taskFailed } from "./fail.js";
import { learn, learnCharge } from "./learn.js";
import type { Session } from "./ports.js";
import type { Turns } from "./turns.js";

const accountFineMs = 60_000;

/** A poll in flight: of whose task, and when it was sent. */
interface Poll {
  item: Item;
  attempt: Attempt;
  sentAt: number;
}

/** What a poll found of a task that it did not find to have ended. */
type Unfinished = Extract<TaskOutcome, { kind: "processing" | "refused" | "unclear" }>;

/** Polls tasks. Whatever a poll returns, a task that is not final stays alive and is never submitted again. */
export class Polling {
  /** By item: polls in a row that found no fresh addresses, or nothing about the task. */
  private readonly vainPolls = new Map<number, number>();
  /** Until then, a refusal without the service's own code need not be checked against the account again. */
  private accountIsFine: Wait | null = null;

  constructor(
    private readonly session: Session,
    private readonly paces: DurationEstimates,
    private readonly turns: Turns,
  ) {}

  async poll(itemId: number, ticket: Ticket): Promise<void> {
    const { store, service, clock } = this.session.ports;
    const [item, attempt] = await Promise.all([store.item(itemId), store.attempt(itemId)]);
    if (!attempt?.taskId) throw new Error(`item ${itemId} is ${item.state} without a task id`);
    const sentAt = clock.now();
    const outcome = await this.blamed(await service.task(attempt.taskId, ticket));
    this.session.gate.polled(outcome);
    await this.note({ item, attempt, sentAt }, outcome);
  }

  /** A refusal without the service's own code says nothing about the account if the account is fine. */
  private async blamed(outcome: TaskOutcome): Promise<TaskOutcome> {
    if (outcome.kind !== "refused" || outcome.isStated || outcome.stop === "pause") return outcome;
    this.accountIsFine =
      this.accountIsFine?.isOver === false ? this.accountIsFine : await this.readAccount(outcome);
    if (this.accountIsFine === null) return outcome;
    const reason = `answer ${outcome.answer}`;
    return { kind: "unclear", reason, missing: false, statedMissing: false, reached: true };
  }

  private async readAccount({ stop }: Extract<TaskOutcome, { kind: "refused" }>): Promise<Wait | null> {
    this.session.gate.requests++;
    const { on } = await blameFor(this.session.ports, stop, null);
    return on === "request" ? this.session.ports.service.time.wait(accountFineMs) : null;
  }

  /** Records what the poll found for its item; the spend log learns of an end after it. */
  private async note(poll: Poll, outcome: TaskOutcome): Promise<void> {
    const { item, attempt } = poll;
    const { gate } = this.session;
    if (outcome.kind === "completed" || outcome.kind === "failed") {
      this.vainPolls.delete(item.id);
      if (item.state !== "ready") this.turns.ended(item.id, priceGroup(item), outcome.endedMs ?? 0);
    }
    switch (outcome.kind) {
      case "completed":
        await this.completed(poll, outcome);
        // What is paid for and of no use says as much about its model as a failure.
        if (outcome.unusable === undefined) gate.breaker.succeeded(item.model);
        else gate.breaker.failed(item.model, "provider", outcome.unusable);
        return;
      case "failed":
        await this.failed(poll, outcome);
        return;
      case "processing":
        // The last time at which a task was open matters if a reading of the counters waits for the task, or would soon
        // count it as ended.
        if (
          item.state === "overdue" ||
          (attempt.spendLogId !== null && gate.settling.awaits(attempt.spendLogId))
        )
          await this.logPoll(attempt, { task: "open" });
        await this.pollAgain(poll, outcome);
        return;
      case "refused":
        await this.pollAgain(poll, outcome);
        return;
      case "unclear":
        if (item.state === "ready" && outcome.missing) await this.taskLost(item, outcome.reason);
        else await this.pollAgain(poll, outcome);
    }
  }

  private async completed(
    { item, attempt }: Poll,
    outcome: Extract<TaskOutcome, { kind: "completed" }>,
  ): Promise<void> {
    const { ports, gate } = this.session;
    const { unusable } = outcome;
    const addresses: Addresses = { urls: outcome.urls, fetchBy: fetchBy(outcome.urls, ports.clock.now()) };
    if (item.state === "ready") {
      if (unusable !== undefined) return this.taskLost(item, unusable);
      await ports.store.refreshOutputs(item.id, addresses);
      return;
    }
    if (outcome.odd.length > 0)
      ports.log.warn(
        { item: item.rowId, fields: outcome.odd },
        "a finished task has odd fields; they are ignored",
      );
    await learnCharge(ports, gate.prices, item, outcome.charged);
    await ports.store.complete(item.id, { ...outcome, ...addresses });
    if (unusable !== undefined) await ports.store.apply(item.id, "unfetchable", { note: unusable });
    await Promise.all([
      this.logPoll(attempt, loggedEnd("completed", outcome)),
      learn(ports, this.paces, item, attempt, outcome),
    ]);
  }

  private async failed(
    { item, attempt }: Poll,
    outcome: Extract<TaskOutcome, { kind: "failed" }>,
  ): Promise<void> {
    const { ports, gate } = this.session;
    if (item.state === "ready") {
      const note = `the task now says it failed: ${outcome.message}`;
      await ports.store.apply(item.id, "unfetchable", { note });
      return;
    }
    // A refused prompt ends at once, and says nothing about how long a generation takes.
    this.paces.forget(priceGroup(item), item.id);
    gate.prices.failed(item);
    await taskFailed(this.session, item, { ...outcome, kind: taskFailureKind(outcome.message) });
    await this.logPoll(attempt, loggedEnd("failed", outcome));
  }

  private async logPoll({ spendLogId }: Attempt, poll: LoggedPoll): Promise<void> {
    if (spendLogId === null) return;
    await this.session.ports.spendLog.polled(spendLogId, poll);
    await this.session.gate.settling.polled();
  }

  /** The service no longer knows a task that had completed, or its addresses: there will be no fresh ones. */
  private async taskLost(item: Item, reason: string): Promise<void> {
    const { store, clock } = this.session.ports;
    if (item.tries + 1 >= triesMax) {
      await store.apply(item.id, "unfetchable", { note: `no fresh address: ${reason}` });
      return;
    }
    // It is polled only a few times, so it need not share the day's polls with all overdue tasks.
    const wait = overdueInterval(0, { ...(await this.overdue()), tasks: 1 });
    await store.reschedule(item.id, clock.now() + wait, { tries: 1, note: reason });
  }

  /** The number of overdue tasks including this one, and the daily limit that their polls use. */
  private async overdue(): Promise<Overdue> {
    const { store, accounts, accountId } = this.session.ports;
    const counts = await store.counts(this.session.settings.run.id);
    const { day } = await accounts.quota(accountId);
    return { tasks: Math.max(1, counts.overdue), perDay: day.limit };
  }

  /** Sets the time of the next poll. A task that has taken too long becomes overdue and is polled rarely. */
  private async pollAgain(poll: Poll, outcome: Unfinished): Promise<void> {
    const { store, clock, service } = this.session.ports;
    const { item, attempt, sentAt } = poll;
    const unfinished = outcome.kind === "processing" ? outcome : null;
    const note = outcome.kind === "unclear" ? outcome.reason : (unfinished?.note ?? null);
    const now = clock.now();
    const began = { at: attempt.answeredAt ?? attempt.intendedAt, sentAt: attempt.sentAt };
    const age = service.time.taskAge(began, unfinished?.ageMs ?? null);
    const seen = unfinished ? { seenAt: now } : {};
    if (unfinished?.queued && item.state !== "ready") {
      // Its time has not begun.
      const { aheadMs } = unfinished.queued;
      this.turns.waits(item.id, aheadMs ?? queuedInterval(null));
      await store.reschedule(item.id, now + queuedInterval(aheadMs), { note, ...seen });
      return;
    }
    if (unfinished) {
      this.paces.unfinished(priceGroup(item), item.id, age);
      this.turns.found(item.id, age);
    }
    if (item.state === "processing" && this.isTelling(poll, outcome) && windowPassed(age)) {
      this.session.gate.prices.seen(item, null);
      await store.apply(item.id, "window_passed", {
        nextAt: now + overdueInterval(age, await this.overdue()),
        note: note ?? "not finished within 10 minutes",
        ...seen,
      });
      return;
    }
    if (item.state === "ready") {
      // The polls of a ready item count the tries to fetch it.
      await store.reschedule(item.id, now + (await this.waitForAddress(item, age)), { note, ...seen });
      return;
    }
    const nextAt =
      item.state === "overdue"
        ? now + overdueInterval(age, await this.overdue())
        : unfinished
          ? Math.max(now, sentAt + pollSpacing(age))
          : now + pollInterval(item.tries + 1);
    await store.reschedule(item.id, nextAt, { tries: 1, note, ...seen });
  }

  /**
   * Whether a poll tells whether its task has ended. A poll that tells nothing makes no task overdue: the task may have
   * ended, and the network or the service be in trouble for a moment, as when a laptop has just woken up. Many of them in
   * a row are enough, except in an outage, which ends the run.
   */
  private isTelling({ item, sentAt }: Poll, outcome: Unfinished): boolean {
    if (outcome.kind === "processing") this.vainPolls.delete(item.id);
    if (outcome.kind === "processing" || (outcome.kind === "unclear" && outcome.statedMissing)) return true;
    return !this.session.gate.reach.wasOut(sentAt) && this.inVain(item) >= triesMax;
  }

  /** Counts one more poll that found nothing, and returns how many there were in a row. */
  private inVain({ id }: Item): number {
    const vain = (this.vainPolls.get(id) ?? 0) + 1;
    this.vainPolls.set(id, vain);
    return vain;
  }

  /**
   * Milliseconds until fresh addresses are requested again. A finished task waits for nothing else, and its outputs are
   * not kept forever, so it is polled rarely only if the service keeps returning no fresh addresses.
   */
  private async waitForAddress(item: Item, ageMs: number): Promise<number> {
    const vain = this.inVain(item);
    return vain < triesMax ? backoffMs(vain) : overdueInterval(ageMs, await this.overdue());
  }
}
