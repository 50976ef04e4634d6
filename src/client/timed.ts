import type { Send } from "../core/ports/send.js";
import { servedAt } from "./answer.js";
import type { ServiceTime } from "./service-time.js";

/** Hands on what time it is at the service, from whatever it answers. */
export function timed(send: Send, time: ServiceTime): Send {
  return async (request, signal) => {
    const tell = time.asking();
    const reply = await send(request, signal);
    const at = reply.kind === "answer" ? servedAt(reply) : null;
    if (at !== null) tell(at);
    return reply;
  };
}
