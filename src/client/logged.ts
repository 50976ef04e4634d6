import type { Clock } from "../clock.js";
import type { Log, Send } from "../core/ports/send.js";

/**
 * Writes down each request and what came of it: never a body, never a header of ours. What a refusal means for the run
 * is told at its end, or at once by whoever knows; here it is for those who want to follow every request.
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
