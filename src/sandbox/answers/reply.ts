import type { WorldResponse } from "./answers.js";

/** An answer as it goes over the wire. */
export interface SandboxReply {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** How the world's answer is written. */
export function written({ status, headers, body, form }: WorldResponse): SandboxReply {
  if (form === "empty") return { status, headers, body: "" };
  const [type, text] =
    form === "text"
      ? ["text/plain; charset=utf-8", String(body)]
      : ["application/json", JSON.stringify(body)];
  return { status, headers: { "Content-Type": type, ...headers }, body: text };
}
