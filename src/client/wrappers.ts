import { isOfModel } from "../api/error-words.js";
import { meaningOf } from "../api/errors.js";
import { keyRemover } from "../api/key.js";
import { parseJson } from "../api/values.js";
import type { Clock } from "../clock.js";
import { retryAfterMs, retryAfterMsMax, statedRetryAfterMs } from "../core/again.js";
import type { StopOrWait } from "../core/next/options.js";
import type { Caller, QuotaLedger } from "../core/ports/accounts.js";
import type { ApiRequest, Log, Reply, Send, Ticket } from "../core/ports/send.js";
import { isLongWait, NoRequestsUntil, type Pacing } from "../core/quota/quota.js";
import { plainReason, type Reason } from "../core/reason.js";

/**
 * Removes the API key from everything that a service sends back (P21): a service that repeats the key must not get it
 * logged, stored or printed. The part after `svc_` is the secret, so it is removed on its own as well.
 */
export function withoutKey(send: Send, key: string): Send {
  const clean = keyRemover(key);
  return async (request, signal) => cleaned(await send(request, signal), clean);
}

function cleaned(reply: Reply, clean: (text: string) => string): Reply {
  if (reply.kind !== "answer") return { ...reply, reason: clean(reply.reason) };
  const headers = Object.entries(reply.headers).map(([name, value]) => [clean(name), clean(value)] as const);
  return { ...reply, headers: Object.fromEntries(headers), body: clean(reply.body) };
}

const quietMs = 10_000;

/** Logs a warning when the account or the models take long: until they arrive, the program seems to do nothing. */
export function announced(send: Send, log: Log, clock: Clock): Send {
  return async (request, signal) => {
    if (request.endpoint !== "me" && request.endpoint !== "models") return send(request, signal);
    const answered = new AbortController();
    void clock.sleep(quietMs, answered.signal).then(() => {
      const asked = `${request.method} ${request.path}`;
      if (!answered.signal.aborted)
        log.warn({ request: asked }, `${asked}: no answer yet after 10 s; still waiting`);
    });
    try {
      return await send(request, signal);
    } finally {
      answered.abort();
    }
  };
}

/**
 * Logs each request and its outcome, but no body and no header of ours. The run itself reports what a refusal means for
 * it; this log is for following every request.
 */
export function logged(send: Send, log: Log, clock: Clock): Send {
  return async (request, signal) => {
    const started = clock.monotonic();
    const reply = await send(request, signal);
    const facts = {
      request: `${request.method} ${request.path}`,
      ms: Math.round(clock.monotonic() - started),
      ...(reply.kind === "answer" ? { status: reply.status } : { reason: reply.reason }),
    };
    if (reply.kind === "answer" && reply.status < 400) log.debug(facts, "answered");
    else log.info(facts, reply.kind === "answer" ? "refused" : reply.kind.replace("_", " "));
    return reply;
  };
}

/** Which quota the requests use. The account may be merged with another one while requests are in flight. */
export interface PacingOptions {
  accounts: Omit<QuotaLedger, "past">;
  caller(): Caller;
  clock: Clock;
  log?: Pick<Log, "warn">;
  /** What to do when the day's requests are used up. */
  onDailyLimit: StopOrWait;
  /** Called when a refusal has shown that requests must be spaced more widely. */
  onSlowed?(pacing: Pacing): void;
  /** Called when a request has to wait for a slot. */
  onWait?(reason: Reason): void;
}

/**
 * Keeps the account's quota: every request holds a slot in the ledger before it is sent and until the window's length
 * after its answer. A request that comes with a ticket has its slot; any other waits for one. A request that was not
 * sent gives its slot back. A 429 silences the account. Throws NoRequestsUntil where the wait is longer than allowed.
 */
export function paced(send: Send, pacing: PacingOptions): Send {
  return async (request, signal) => {
    const ticket = request.ticket ?? (await waitForSlot(pacing, request, signal));
    if (ticket === null) return { kind: "not_sent", reason: "interrupted" };
    await request.onSlot?.();
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
  if (!isRefused || isOfModel(parseJson(reply.body))) return;
  const ms = retryAfterMs(reply.headers, clock.now());
  if ((statedRetryAfterMs(reply.headers, clock.now()) ?? 0) > retryAfterMsMax)
    pacing.log?.warn(
      { retryAfter: reply.headers["retry-after"] },
      "the service asks for a pause of more than a day: it is asked again once a day; `bulkgen account --forget-pause` asks it again now",
    );
  const { slowed } = await accounts.silence(pacing.caller().accountId, ms);
  if (slowed !== null) pacing.onSlowed?.(slowed);
}

/** Waits for a slot in the quota; null when interrupted. Throws NoRequestsUntil where the wait is longer than allowed. */
async function waitForSlot(
  pacing: PacingOptions,
  request: Pick<ApiRequest, "endpoint">,
  signal: AbortSignal | undefined,
): Promise<Ticket | null> {
  while (!signal?.aborted) {
    const reservation = await pacing.accounts.reserve(pacing.caller(), request.endpoint);
    if (reservation.ticket) return reservation.ticket;
    const { waitUntil, waitsFor } = reservation;
    const waitMs = waitUntil - pacing.clock.now();
    if (pacing.onDailyLimit === "stop" && isLongWait(waitsFor, waitMs))
      throw new NoRequestsUntil(waitsFor, waitUntil);
    pacing.onWait?.(plainReason(waitsFor, waitUntil));
    await pacing.clock.sleep(Math.max(1, waitUntil - pacing.clock.now()), signal);
  }
  return null;
}
