import type { TaskOutcome } from "../client/answer.js";
import { taskFailureKind } from "../core/failure.js";
import { fetchBy } from "../core/fetch-by.js";
import { priceGroup } from "../core/identity.js";
import {
  type Overdue,
  overdueInterval,
  pollInterval,
  pollSpacing,
  taskAge,
  windowPassed,
} from "../core/pace/poll.js";
import type { Attempt } from "../core/ports/attempt.js";
import type { Ticket } from "../core/ports/send.js";
import type { LoggedPoll } from "../core/ports/spend-log.js";
import type { Addresses, Item } from "../core/ports/store.js";
import { backoffMs } from "../core/quota/backoff.js";
import { taskFailed } from "./fail.js";
import { triesMax } from "./fetch.js";
import { learn, learnCharge } from "./learn.js";
import { bookedEnd } from "./receipts/conclusion.js";
import type { Session } from "./session.js";

/** One look at a task. Whatever comes back, a task that is not final stays alive and is never submitted again. */
export async function pollTask(session: Session, itemId: number, ticket: Ticket): Promise<void> {
  const { store, service } = session.ports;
  const item = await store.item(itemId);
  const attempt = await store.attempt(itemId);
  if (!attempt?.taskId) throw new Error(`item ${itemId} is ${item.state} without a task id`);
  const sentAt = session.ports.clock.now();
  const outcome = await service.task(attempt.taskId, ticket);
  await record(session, { item, attempt, sentAt }, outcome);
}

/** A look under way: at whose task, and when it left. */
interface Looking {
  item: Item;
  attempt: Attempt;
  sentAt: number;
}

async function record(session: Session, looking: Looking, outcome: TaskOutcome): Promise<void> {
  if (outcome.kind === "unclear" && !outcome.reached) session.missed(outcome.reason);
  else session.reached();
  await note(session, looking, outcome);
}

/** What the look tells about its item; the books learn of an end after it. */
async function note(session: Session, looking: Looking, outcome: TaskOutcome): Promise<void> {
  const { item, attempt } = looking;
  const { store } = session.ports;
  switch (outcome.kind) {
    case "completed":
      if (item.state === "ready") {
        session.vainLooks.delete(item.id);
        await store.refreshOutputs(item.id, addressed(session.ports, outcome));
      } else {
        await learnCharge(session, item, outcome.charged);
        await store.complete(item.id, { ...outcome, ...addressed(session.ports, outcome) });
        await book(session, attempt, bookedEnd("completed", outcome));
        await learn(session, item, attempt, outcome);
      }
      session.breaker.succeeded(item.model);
      return;
    case "failed":
      if (item.state === "ready") {
        await store.apply(item.id, "unfetchable", {
          note: `the task now says it failed: ${outcome.message}`,
        });
        return;
      }
      // A refused prompt ends at once, and says nothing of how long a generation takes.
      session.paces.gone(priceGroup(item), item.id);
      session.prices.failed(item);
      await taskFailed(session, item, { ...outcome, kind: taskFailureKind(outcome.message) });
      await book(session, attempt, bookedEnd("failed", outcome));
      return;
    case "processing":
      // Until when a task was open matters where a reading of the counters waits for it, or would soon take it for ended.
      if (
        item.state === "overdue" ||
        (attempt.bookEntry !== null && session.settling.awaits(attempt.bookEntry))
      )
        await book(session, attempt, { task: "open" });
      await pollAgain(session, looking, null, outcome);
      return;
    case "refused":
      session.refused(outcome.stop, [outcome.code, outcome.message].filter(Boolean).join(": "));
      await pollAgain(session, looking, null, null);
      return;
    case "unclear":
      if (item.state === "ready" && outcome.missing) await lookForLost(session, item, outcome.reason);
      else await pollAgain(session, looking, outcome.reason, null);
  }
}

function addressed({ clock }: Session["ports"], { urls }: { urls: readonly string[] }): Addresses {
  return { urls, fetchBy: fetchBy(urls, clock.now()) };
}

async function book({ ports, settling }: Session, { bookEntry }: Attempt, look: LoggedPoll): Promise<void> {
  if (bookEntry === null) return;
  await ports.books.looked(bookEntry, look);
  await settling.looked();
}

/** The service does not know a task any more that had ended well: without it there are no fresh addresses. */
async function lookForLost(session: Session, item: Item, reason: string): Promise<void> {
  const { store, clock } = session.ports;
  if (item.looks + 1 >= triesMax) {
    await store.apply(item.id, "unfetchable", { note: `no fresh address: ${reason}` });
    return;
  }
  // It is asked for a few times only, so it need not share the looks of the day with all that are overdue.
  const wait = overdueInterval(0, { ...(await overdue(session)), tasks: 1 });
  await store.reschedule(item.id, clock.now() + wait, { looks: 1, note: reason });
}

/** How many tasks are overdue with the one at hand, and what their looks come out of. */
async function overdue(session: Session): Promise<Overdue> {
  const { store, accounts, accountId } = session.ports;
  const counts = await store.counts(session.settings.run.id);
  const { day } = await accounts.quota(accountId);
  return { tasks: Math.max(1, counts.overdue), perDay: day.limit };
}

/** Sets when the next look may be; a task whose window has passed becomes overdue and is looked at rarely. */
async function pollAgain(
  session: Session,
  { item, attempt, sentAt }: Looking,
  note: string | null,
  unfinished: { ageMs: number | null } | null,
): Promise<void> {
  const { store, clock, service } = session.ports;
  const now = clock.now();
  // A look that told nothing leaves the time since its request was sent, by the service's clock as well.
  const told = unfinished?.ageMs ?? service.time.now.earliest - attempt.sentAt;
  const age = taskAge(now - (attempt.answeredAt ?? attempt.intendedAt), told);
  const seen = unfinished ? { seenAt: now } : {};
  if (unfinished) session.paces.unfinished(priceGroup(item), item.id, age);
  if (item.state === "processing" && windowPassed(age)) {
    session.prices.seen(item, null);
    await store.apply(item.id, "window_passed", {
      nextAt: now + overdueInterval(age, await overdue(session)),
      note: note ?? "not finished within 10 minutes",
      ...seen,
    });
    return;
  }
  if (item.state === "ready") {
    // The looks of a ready item count what is tried to fetch it.
    await store.reschedule(item.id, now + (await waitForAddress(session, item, age)), { note, ...seen });
    return;
  }
  const nextAt =
    item.state === "overdue"
      ? now + overdueInterval(age, await overdue(session))
      : unfinished
        ? Math.max(now, sentAt + pollSpacing(age))
        : now + pollInterval(item.looks + 1);
  await store.reschedule(item.id, nextAt, { looks: 1, note, ...seen });
}

/**
 * Milliseconds until fresh addresses are asked for again. A finished task waits for nothing else, and its outputs are
 * not kept forever: only a service that goes on telling nothing is asked rarely.
 */
async function waitForAddress(session: Session, item: Item, ageMs: number): Promise<number> {
  const vain = (session.vainLooks.get(item.id) ?? 0) + 1;
  session.vainLooks.set(item.id, vain);
  return vain < triesMax ? backoffMs(vain) : overdueInterval(ageMs, await overdue(session));
}
