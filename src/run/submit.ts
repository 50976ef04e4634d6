import { createHash } from "node:crypto";
import type { GenerateRequest } from "../api/records.js";
import type { GenerateOutcome } from "../client/answer.js";
import { priceGroup } from "../core/price.js";
import type { Ticket } from "../core/send.js";
import type { Attempt, Item } from "../core/store.js";
import { bookedAnswer, type Conclusion, conclusionOf, refusalText } from "./conclusion.js";
import { requestRejected } from "./fail.js";
import type { Session } from "./session.js";

/**
 * One paid request, in the order that keeps its promise: the intent is in the account's books, in the database and in
 * the receipts before the request leaves; it is sent once; its answer is in the receipts and in the database before anything else happens.
 */
export async function submit(session: Session, itemId: number, ticket: Ticket): Promise<void> {
  const { store, service, receipts, clock } = session.ports;
  const { run } = session.settings;
  const item = await store.item(itemId);
  const body = requestBody(item);
  const bodySha256 = createHash("sha256").update(body).digest("hex");
  session.prices.trying(item);
  const { books } = session.ports;
  const day = session.caps.dailyCap(clock.now());
  const intent = { itemKey: item.key, price: item.price };
  const bookEntry = await (day === null ? books.intend(intent) : books.intendWithin(day, intent));
  if (bookEntry === null) return giveWay(session, item, ticket);
  const attempt = await store.intend(itemId, { runId: run.id, bodySha256, bookEntry });
  try {
    await receipts.intent(run, item, attempt, body);
  } catch (error) {
    await callOff(session, item, attempt, ticket, error as Error);
    return;
  }
  const outcome = await service.generate(body, ticket);
  const conclusion = conclusionOf(outcome, clock.now());
  await writeReceipt(session, item, attempt, conclusion);
  await conclude(session, attempt, conclusion);
  if (conclusion.event === "unanswered") session.settling.lost();
  await learnPrice(session, item, outcome);
  await draw(session, item, outcome);
}

/** The JSON text of the request: only what the row gave, params as strings. */
export function requestBody(item: Pick<Item, "model" | "prompt" | "params" | "inputs">): string {
  const request: GenerateRequest = {
    model: item.model,
    ...(item.prompt === null ? {} : { prompt: item.prompt }),
    ...(Object.keys(item.params).length === 0 ? {} : { params: { ...item.params } }),
    ...item.inputs,
  };
  return JSON.stringify(request);
}

/** Another run of the account was quicker with the day's last credits. */
async function giveWay({ ports, prices }: Session, item: Item, ticket: Ticket): Promise<void> {
  await ports.accounts.release(ticket);
  prices.refused(item);
}

/** The intent could not be made durable, so the request does not leave. */
async function callOff(
  session: Session,
  item: Item,
  attempt: Attempt,
  ticket: Ticket,
  error: Error,
): Promise<void> {
  const { accounts } = session.ports;
  await accounts.release(ticket);
  await conclude(session, attempt, { event: "not_sent", outcome: { message: error.message } });
  session.prices.refused(item);
  session.receiptWritten(error);
}

/** The second memory of the answer. Where the disk refuses it, the first one, the database, still has it. */
async function writeReceipt(
  session: Session,
  item: Item,
  attempt: Attempt,
  conclusion: Conclusion,
): Promise<void> {
  await session.ports.receipts.answer(session.settings.run, item, attempt, conclusion).then(
    () => session.receiptWritten(null),
    (error: Error) => session.receiptWritten(error),
  );
}

/** Writes down what became of an attempt: for its item, then for the account. */
export async function conclude(
  { ports }: Pick<Session, "ports">,
  attempt: Attempt,
  { event, outcome }: Conclusion,
): Promise<void> {
  await ports.store.conclude(attempt.id, event, outcome);
  if (attempt.bookEntry !== null) await ports.books.answered(attempt.bookEntry, bookedAnswer(event, outcome));
}

/** Compares what was charged with what was planned, and remembers it. */
async function learnPrice(session: Session, item: Item, outcome: GenerateOutcome): Promise<void> {
  const { ports, prices } = session;
  if (outcome.kind !== "accepted") return prices.refused(item);
  prices.charged(item, outcome.charged);
  if (outcome.charged === null) return;
  const { run } = session.settings;
  if (outcome.remaining !== null) await session.caps.balanceTold(ports.store, run.id, outcome.remaining);
  if (prices.noteHighest(item, outcome.charged))
    await ports.accounts.charged(ports.accountId, priceGroup(item), outcome.charged);
}

/** What the answer means for the rest of the run. */
async function draw(session: Session, item: Item, outcome: GenerateOutcome): Promise<void> {
  if (outcome.kind === "not_sent") return session.missed(outcome.reason);
  if (outcome.kind === "unknown") {
    return outcome.status === undefined ? session.missed(outcome.reason) : session.reached();
  }
  session.reached();
  if (outcome.kind === "refused") session.refused(outcome.status, refusalText(outcome));
  if (outcome.kind === "rejected") await requestRejected(session, item, outcome);
}
