import type { Reply, Send } from "../core/ports/send.js";

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
