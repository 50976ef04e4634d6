import type { MiddlewareHandler } from "hono";
import { errorAnswer, SandboxRefusal } from "../answers/answers.js";
import { written } from "../answers/reply.js";

/**
 * A page in the browser of this machine can make a name of its own mean 127.0.0.1 and then talk to whatever listens
 * there. Its requests carry that name as Host, so only names that always mean this machine are answered.
 */
const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

export function isLoopbackHost(host: string): boolean {
  return loopbackHost.test(host);
}

/** Answers 421 to a request that names another host. */
export const loopbackOnly: MiddlewareHandler = async (context, next) => {
  const host = context.req.header("host") ?? new URL(context.req.url).host;
  if (isLoopbackHost(host)) return next();
  const refusal = new SandboxRefusal(421, "HOST_REFUSED", "This sandbox answers on loopback names only.");
  const { status, headers, body } = written(errorAnswer(refusal));
  return new Response(body, { status, headers });
};
