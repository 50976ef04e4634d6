import type { Clock } from "../clock.js";
import type { Log, Send } from "../core/ports/send.js";

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
