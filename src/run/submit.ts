import { createHash } from "node:crypto";
import type { GenerateRequest } from "../api/records.js";
import type { GenerateOutcome } from "../client/answer.js";
import { backoffMsMax, retryAfterMs } from "../core/again.js";
import { priceGroup } from "../core/identity.js";
import type { LaneAnswer, ServiceSign } from "../core/pace/lanes.js";
import type { Attempt, Conclusion } from "../core/ports/attempt.js";
import type { Ticket } from "../core/ports/send.js";
import type { Item, Run } from "../core/ports/store.js";
import { blamed } from "./blame.js";
import { conclude, conclusionOf, refusalText } from "./conclude.js";
import { requestRejected } from "./fail.js";
import type { Session } from "./ports.js";
import { repeatKey } from "./repeat-key.js";

/** How long a model rests whose queue is full, if the service does not say (ms). */
const restMs = 10_000;

/**
 * One paid request, in the order that keeps promise P1: the intent is in the account's spend log, in the database and in
 * the receipts before the request leaves. The request is sent once. Its answer is in the receipts and in the database
 * before anything else happens. Returns what the answer says about the service; null if nothing was sent.
 */
export async function submit(session: Session, itemId: number, ticket: Ticket): Promise<LaneAnswer | null> {
  const { gate, settings, chains, publishing } = session;
  const { store, service, receipts, spendLog, clock } = session.ports;
  const item = await store.item(itemId);
  // Nothing but a planned item is paid for, whatever chose it.
  if (item.state !== "planned") {
    await session.ports.accounts.release(ticket);
    return null;
  }
  const rest = gate.restsUntil(item.model);
  if (rest !== null) {
    await store.reschedule(item.id, rest);
    return putOff(session, ticket);
  }
  const handedOn = await chains.inputsOf(item);
  const inputs = handedOn === null ? null : await publishing.inputsOf(item, handedOn);
  if (inputs === null) return putOff(session, ticket);
  const body = requestBody({ ...item, inputs });
  const bodySha256 = bodyHash(body);
  if (!gate.prices.trying(item)) return putOff(session, ticket);
  const { now: sending } = service.time;
  const bounds = gate.caps.bounds(sending);
  const { latest: sentAt } = sending;
  const intent = { itemKey: item.key, price: item.price, at: sentAt };
  const spendLogId = await (bounds === null
    ? spendLog.intend(intent)
    : spendLog.intendWithin(bounds, intent));
  if (spendLogId === null) return giveWay(session, item, ticket);
  const attempt = await store.intend(itemId, { runId: settings.run.id, sentAt, bodySha256, spendLogId });
  try {
    await receipts.intent(settings.run, item, attempt, body);
  } catch (error) {
    await callOff(session, item, attempt, ticket, error as Error);
    return null;
  }
  const beganAt = clock.monotonic();
  const answer = await service.generate(body, ticket, repeatKey(item, attempt));
  const at = clock.monotonic();
  await writeReceipt(session, settings.run, item, attempt, conclusionOf(answer, clock.now()));
  const outcome = await blamed(session.ports, answer, item, gate.doubted);
  const answered = conclusionOf(outcome, clock.now());
  if (outcome !== answer) {
    // GET me was asked.
    session.gate.requests++;
    await writeReceipt(session, settings.run, item, attempt, answered);
  }
  const concluded = await conclude(session.ports, attempt, answered);
  const isDoubted = outcome !== answer && outcome.kind === "refused" && outcome.stop === "pause";
  if (isDoubted) await store.reschedule(item.id, clock.now() + backoffMsMax);
  if (concluded.event === "unanswered") gate.settling.lost(attempt.spendLogId);
  await learnPrice(session, item, concluded);
  if (outcome.kind === "refused" && outcome.ofModel) {
    const { retryAfter } = outcome.ofModel;
    const stated = retryAfter === null ? null : retryAfterMs({ "retry-after": retryAfter }, clock.now());
    gate.rest(item.model, stated ?? restMs);
    await store.reschedule(item.id, clock.now() + (stated ?? restMs));
  }
  await report(session, item, outcome);
  const sign = signOf(outcome);
  return sign === null ? null : { sentAt: beganAt, at, sign };
}

export function signOf(outcome: GenerateOutcome): ServiceSign | null {
  if (outcome.kind === "not_sent") return null;
  const isPause = outcome.kind === "refused" && outcome.stop === "pause" && !outcome.ofModel;
  const isTrouble = outcome.kind === "unknown" || isPause;
  return isTrouble ? "trouble" : "good";
}

/** The JSON text of the request: only what the row gave, params as strings; the inputs as they are sent. */
export function requestBody(item: Pick<Item, "model" | "prompt" | "params" | "inputs">): string {
  const request: GenerateRequest = {
    model: item.model,
    ...(item.prompt === null ? {} : { prompt: item.prompt }),
    ...(Object.keys(item.params).length === 0 ? {} : { params: { ...item.params } }),
    ...item.inputs,
  };
  return JSON.stringify(request);
}

/** SHA-256 of a request's body. */
export function bodyHash(body: string): string {
  return createHash("sha256").update(body).digest("hex");
}

/** The item is chosen again later: an input is not available now, was published just now, or the price is in doubt. */
async function putOff({ ports }: Session, ticket: Ticket): Promise<null> {
  await ports.accounts.release(ticket);
  return null;
}

/** Another run of the account took the last credits, or another item of this one. */
async function giveWay({ ports, gate }: Session, item: Item, ticket: Ticket): Promise<null> {
  await ports.accounts.release(ticket);
  gate.prices.refused(item);
  return null;
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
  await conclude(session.ports, attempt, { event: "not_sent", outcome: { message: error.message } });
  session.gate.prices.refused(item);
  session.gate.receiptWritten(error);
}

/** Writes the answer to the receipts. If the disk refuses it, the database still has the answer. */
export async function writeReceipt(
  session: Session,
  run: Run,
  item: Item,
  attempt: Attempt,
  conclusion: Conclusion,
): Promise<void> {
  await session.ports.receipts.answer(run, item, attempt, conclusion).then(
    () => session.gate.receiptWritten(null),
    (error: Error) => session.gate.receiptWritten(error),
  );
}

/** Compares the charge with the planned price, and stores it. */
export async function learnPrice(
  { ports, gate: { prices, caps } }: Session,
  item: Item,
  { event, outcome: { charged, remaining } }: Conclusion,
): Promise<void> {
  if (event !== "accepted") return prices.refused(item);
  const isNews = prices.charged(item, charged ?? null);
  if (charged === undefined) return;
  const { accounts, accountId } = ports;
  if (remaining !== undefined) await caps.takeRemaining(accounts, accountId, remaining);
  if (isNews) await accounts.charged(accountId, priceGroup(item), charged);
}

/** Reports to the gate what the answer means for the rest of the run. */
export async function report(session: Session, item: Item, outcome: GenerateOutcome): Promise<void> {
  const { gate } = session;
  if (outcome.kind === "not_sent") return gate.missed(outcome.reason);
  if (outcome.kind === "unknown") {
    return outcome.status === undefined ? gate.missed(outcome.reason) : gate.reached();
  }
  gate.reached();
  if (outcome.kind === "accepted") gate.breaker.accepted(item.model);
  if (outcome.kind === "refused" && !outcome.ofModel) gate.refused(outcome.stop, refusalText(outcome));
  if (outcome.kind === "rejected") await requestRejected(session, item, outcome);
}
