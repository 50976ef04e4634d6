import { createHash } from "node:crypto";
import type { GenerateRequest } from "../api/records.js";
import type { GenerateOutcome } from "../client/answer.js";
import { rejectionKind } from "../core/failure.js";
import { pollInterval } from "../core/poll.js";
import type { Ticket } from "../core/send.js";
import type { Attempt, Item } from "../core/store.js";
import { requestRejected } from "./fail.js";
import type { Session } from "./session.js";

/** One paid request, in the order that keeps its promise: intent on record, POST once, answer on record. */
export async function submit(session: Session, itemId: number, ticket: Ticket): Promise<void> {
  const { store, service } = session.ports;
  const item = await store.item(itemId);
  const body = requestBody(item);
  const attempt = await store.intend(itemId, {
    runId: session.settings.run.id,
    bodySha256: createHash("sha256").update(body).digest("hex"),
  });
  await record(session, item, attempt, await service.generate(body, ticket));
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

async function record(
  session: Session,
  item: Item,
  attempt: Attempt,
  outcome: GenerateOutcome,
): Promise<void> {
  const { store, clock } = session.ports;
  switch (outcome.kind) {
    case "accepted":
      await store.conclude(attempt.id, "accepted", {
        status: outcome.status,
        taskId: outcome.taskId,
        ...(outcome.externalTaskId === null ? {} : { externalTaskId: outcome.externalTaskId }),
        ...(outcome.charged === null ? {} : { charged: outcome.charged }),
        ...(outcome.remaining === null ? {} : { remaining: outcome.remaining }),
        nextAt: clock.now() + pollInterval(0),
      });
      session.reached();
      session.answeredClearly();
      return;
    case "refused":
      await store.conclude(attempt.id, "refused", { status: outcome.status, message: detail(outcome) });
      session.reached();
      session.answeredClearly();
      session.refused(outcome.status, detail(outcome));
      return;
    case "rejected":
      await store.conclude(attempt.id, "rejected", {
        status: outcome.status,
        message: detail(outcome),
        failureKind: rejectionKind(outcome.code, outcome.message),
      });
      session.reached();
      session.answeredClearly();
      await requestRejected(session, item, outcome);
      return;
    case "not_sent":
      await store.conclude(attempt.id, "not_sent", { message: outcome.reason });
      session.missed(outcome.reason);
      return;
    case "unknown":
      await leaveUnknown(session, attempt, outcome.reason, outcome.status);
      if (outcome.status === undefined) session.missed(outcome.reason);
      else session.reached();
      session.leftUnknown(outcome.reason);
  }
}

/** The outcome of a paid request that nobody knows: held for a person, and never sent again by itself. */
export async function leaveUnknown(
  { ports: { store } }: Pick<Session, "ports">,
  attempt: Attempt,
  reason: string,
  status?: number,
): Promise<void> {
  await store.conclude(attempt.id, "unanswered", {
    message: reason,
    ...(status === undefined ? {} : { status }),
  });
  await store.apply(attempt.itemId, "undecided", { note: `outcome unknown: ${reason}` });
}

function detail(outcome: { status: number; code: string | null; message: string | null }): string {
  return [outcome.code ?? `answer ${outcome.status}`, outcome.message].filter(Boolean).join(": ");
}
