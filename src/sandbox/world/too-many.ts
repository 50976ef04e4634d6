import { refuse, SandboxRefusal } from "../answers/answers.js";
import type { Switches } from "../state/switches.js";

/** The 429 of a request that may pass in `waitMs` milliseconds, in the form that the switches give it. */
export function tooMany(
  switches: Switches["tooMany"],
  waitMs: number,
  now: number,
  why: string,
): SandboxRefusal {
  const { status, code } = refuse("RATE_LIMITED", why);
  const headers = retryAfter(switches.retryAfter, waitMs, now);
  return new SandboxRefusal(status, code, why, headers, switches.body);
}

function retryAfter(
  form: Switches["tooMany"]["retryAfter"],
  waitMs: number,
  now: number,
): Record<string, string> {
  if (form === "none") return {};
  if (form === "seconds") return { "Retry-After": String(Math.ceil(waitMs / 1_000)) };
  // A date has whole seconds: rounded up, or the client would come too early. It is relative to our own Date.
  const at = Math.ceil((now + waitMs) / 1_000) * 1_000;
  return { Date: new Date(now).toUTCString(), "Retry-After": new Date(at).toUTCString() };
}
