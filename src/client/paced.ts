import { meaningOf } from "../api/errors.js";
import type { Clock } from "../clock.js";
import type { Accounts, Caller } from "../core/ports/accounts.js";
import type { ApiRequest, Log, Reply, Send, Ticket } from "../core/ports/send.js";
import { retryAfterMs } from "../core/quota/backoff.js";
import { isLongWait, NoRequestsUntil, type Pacing, type WaitReason } from "../core/quota/quota.js";

/** Which quota the requests use. The account may be merged with another one while requests are in flight. */
export interface PacingOptions {
  accounts: Pick<Accounts, "reserve" | "answered" | "release" | "silence">;
  caller(): Caller;
  clock: Clock;
  log?: Pick<Log, "warn">;
  /** What to do when the day's requests are used up. */
  onDailyLimit: "stop" | "wait";
  /** Called when a refusal has shown that requests must be spaced more widely. */
  onSlowed?(pacing: Pacing): void;
  /** Called when a request has to wait for a slot: for what, until when (UTC ms). */
  onWait?(what: WaitReason, until: number): void;
}

/**
 * Keeps the account's quota: every request holds a slot in the ledger before it is sent and until the window's length
 * after its answer. A request that comes with a ticket has its slot; any other waits for one. A request that was not
 * sent gives its slot back. A 429 silences the account. Throws NoRequestsUntil where the wait is longer than allowed.
 */
export function paced(send: Send, pacing: PacingOptions): Send {
  return async (request, signal) => {
    const ticket = request.ticket ?? (await waitForPlace(pacing, request, signal));
    if (ticket === null) return { kind: "not_sent", reason: "interrupted" };
    await request.onPlace?.();
    const reply = await send(request, signal);
    // The answer may contain a task's id, so it is returned even if the ledger fails. A request whose end is not
    // recorded counts as ended at the latest possible time.
    await recordReply(pacing, ticket, reply).catch((error: unknown) =>
      pacing.log?.warn({ error: String(error) }, "the end of a request could not be recorded"),
    );
    return reply;
  };
}

async function recordReply(pacing: PacingOptions, ticket: Ticket, reply: Reply): Promise<void> {
  const { accounts, clock } = pacing;
  if (reply.kind === "not_sent") await accounts.release(ticket);
  if (reply.kind !== "answer") return;
  const isRefused = meaningOf(reply.status).stop === "pause";
  await accounts.answered(ticket, isRefused);
  if (!isRefused) return;
  const ms = retryAfterMs(reply.headers, clock.now());
  const { slowed } = await accounts.silence(pacing.caller().accountId, ms);
  if (slowed !== null) pacing.onSlowed?.(slowed);
}

/** Waits for a slot in the quota; null when interrupted. Throws NoRequestsUntil where the wait is longer than allowed. */
export async function waitForPlace(
  pacing: PacingOptions,
  request: Pick<ApiRequest, "endpoint">,
  signal: AbortSignal | undefined,
): Promise<Ticket | null> {
  while (!signal?.aborted) {
    const reservation = await pacing.accounts.reserve(pacing.caller(), request.endpoint);
    if (reservation.ticket) return reservation.ticket;
    const { waitUntil, waitsFor } = reservation;
    const isLong = isLongWait(waitsFor, waitUntil - pacing.clock.now());
    if (isLong && waitsFor !== "minute" && pacing.onDailyLimit === "stop")
      throw new NoRequestsUntil(waitsFor, waitUntil);
    pacing.onWait?.(waitsFor, waitUntil);
    await pacing.clock.sleep(Math.max(1, waitUntil - pacing.clock.now()), signal);
  }
  return null;
}
