import type { WorldFault } from "../../service/answers/answers.js";
import type { ServiceReply } from "../../service/answers/reply.js";
import type { RequestFault } from "./fault.js";

/** What happens to one request under its fault. Times are milliseconds. */
export interface Course {
  /** How long the request takes to reach the service; null when it never arrives. */
  arrivesMs: number | null;
  /** What goes wrong inside the service. */
  inside?: WorldFault;
  /** How long the answer waits before it is sent; null when the caller gets none, because the connection breaks. */
  repliesMs: number | null;
  /** The answer sent instead of the service's, whether or not the request arrives. */
  instead?: ServiceReply;
  /** What the service's answer has become when it is sent. */
  spoil: (reply: ServiceReply) => ServiceReply;
  /** Whether the connection breaks in the middle of the body. */
  cut: boolean;
  /** How fast the body comes; null is at once. */
  bytesPerSecond: number | null;
}

const smooth: Course = {
  arrivesMs: 0,
  repliesMs: 0,
  spoil: (reply) => reply,
  cut: false,
  bytesPerSecond: null,
};

/** The course of a request with this fault, or with none. */
export function courseOf(fault: RequestFault | null): Course {
  if (fault === null) return smooth;
  switch (fault.kind) {
    case "lost-request":
      return { ...smooth, arrivesMs: null, repliesMs: null };
    case "lost-reply":
      return { ...smooth, repliesMs: null };
    case "late-arrival":
      return { ...smooth, arrivesMs: fault.delayMs, repliesMs: null };
    case "slow-answer":
      return { ...smooth, repliesMs: fault.delayMs };
    case "http-error":
      return { ...smooth, arrivesMs: fault.seen ? 0 : null, instead: errorPage(fault.status, fault.body) };
    case "truncated-json":
      return { ...smooth, spoil: (reply) => ({ ...reply, body: firstHalf(reply.body) }) };
    case "malformed-json":
      return { ...smooth, spoil: (reply) => ({ ...reply, body: malformed(reply.body) }) };
    case "cut-reply":
      return { ...smooth, cut: true };
    case "slow-bytes":
      return { ...smooth, bytesPerSecond: fault.bytesPerSecond };
    default:
      return { ...smooth, inside: fault };
  }
}

const statusTexts: Readonly<Record<number, string>> = {
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Temporarily Unavailable",
  504: "Gateway Time-out",
};

function errorPage(status: number, body: "html" | "empty"): ServiceReply {
  if (body === "empty") return { status, headers: {}, body: "" };
  const title = `${status} ${statusTexts[status] ?? "Server Error"}`;
  return {
    status,
    headers: { "Content-Type": "text/html" },
    body: `<html>\n<head><title>${title}</title></head>\n<body>\n<center><h1>${title}</h1></center>\n</body>\n</html>\n`,
  };
}

/** At least one character is missing, or a short body would pass for whole. */
function firstHalf(body: string): string {
  return body.slice(0, Math.floor(body.length / 2));
}

/** The body with its facts, written so that no JSON parser can read it. */
function malformed(body: string): string {
  return `${body.replaceAll('":', '"=>')};`;
}
