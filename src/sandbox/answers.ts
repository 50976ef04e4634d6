import { type ErrorCode, errorRow } from "../api/errors.js";

/** A request as the world sees it: no sockets, no streams. Header names are in lower case. */
export interface WorldRequest {
  method: string;
  /** The path without the query. */
  path: string;
  query: Readonly<Record<string, string>>;
  headers: Readonly<Record<string, string>>;
  /** The body as text; null when there was none. */
  body: string | null;
  /** True when the body was larger than the sandbox reads; `body` is null then. */
  tooLarge?: boolean;
}

export interface WorldResponse {
  status: number;
  headers: Record<string, string>;
  /** Sent as JSON. */
  body: unknown;
}

/** A request that ends in an error answer. Thrown inside the world, never out of it. */
export class Refusal extends Error {
  override readonly name = "Refusal";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Record<string, string> = {},
  ) {
    super(message);
  }
}

/** A refusal with a code of the service's table, which also gives the status. */
export function refuse(code: ErrorCode, message: string, headers: Record<string, string> = {}): Refusal {
  return new Refusal(errorRow(code).status, code, message, headers);
}

export function succeed(body: unknown): WorldResponse {
  return { status: 200, headers: {}, body };
}

/** The answer of a refusal, in the one shape that all errors have. */
export function errorAnswer(refusal: Refusal): WorldResponse {
  const body = { error: { code: refusal.code, message: refusal.message } };
  return { status: refusal.status, headers: refusal.headers, body };
}
