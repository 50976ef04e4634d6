import type { Clock } from "../clock.js";
import type { Log, Reply, Send } from "../core/ports/send.js";

/**
 * Removes the API key from everything that a service sends back (P21): a service that repeats the key must not get it
 * logged, stored or printed. The part after `svc_` is the secret, so it is removed on its own as well.
 */
export function withoutKey(send: Send, key: string): Send {
  const secret = key.replace(/^svc_/, "") || key;
  const clean = (text: string) => text.replaceAll(key, redaction).replaceAll(secret, redaction);
  return async (request, signal) => cleaned(await send(request, signal), clean);
}

const redaction = "[API key]";

function cleaned(reply: Reply, clean: (text: string) => string): Reply {
  if (reply.kind !== "answer") return { ...reply, reason: clean(reply.reason) };
  const headers = Object.entries(reply.headers).map(([name, value]) => [clean(name), clean(value)] as const);
  return { ...reply, headers: Object.fromEntries(headers), body: clean(reply.body) };
}

const quietMs = 10_000;

/** Says what is being waited for when the account or the models take long: nothing else happens until they are there. */
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
