import { type ErrorCode, errorRow } from "../../api/errors.js";
import type { Switches } from "../state/switches.js";

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
  /** What goes wrong with it inside the service, by script. */
  fault?: WorldFault;
}

export interface WorldResponse {
  status: number;
  headers: Record<string, string>;
  /** Sent as JSON, unless `form` says otherwise. */
  body: unknown;
  form?: BodyForm;
}

/** How an answer's body is sent: its JSON, its text, or nothing. */
export type BodyForm = "json" | "text" | "empty";

/** A request that ends in an error answer. Thrown inside the world, never out of it. */
export class ServiceRefusal extends Error {
  override readonly name = "Refusal";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Record<string, string> = {},
    readonly form: BodyForm = "json",
    /** What the error says beyond code and message. */
    readonly details: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** A refusal with a code of the service's table, which also gives the status. */
export function refuse(
  code: ErrorCode,
  message: string,
  headers: Record<string, string> = {},
): ServiceRefusal {
  const { status } = errorRow(code);
  // HTTP wants every 401 to say how to authenticate.
  const challenge = status === 401 ? { "WWW-Authenticate": "Bearer" } : {};
  return new ServiceRefusal(status, code, message, { ...challenge, ...headers });
}

export function succeed(body: unknown): WorldResponse {
  return { status: 200, headers: {}, body };
}

/** The answer of a refusal, in the one shape that all errors have. */
export function errorAnswer(
  refusal: ServiceRefusal,
  shape: Switches["errorShape"] = "nested",
): WorldResponse {
  const { status, headers, code, message, form, details } = refusal;
  const body = form === "json" ? shaped(shape, code, message, details) : message;
  return { status, headers, body, form };
}

function shaped(
  shape: Switches["errorShape"],
  code: string,
  message: string,
  details: ServiceRefusal["details"],
): unknown {
  if (shape === "nested") return { error: { code, message, ...details } };
  return shape === "flat" ? { code, message, ...details } : { error: code, message, ...details };
}

/**
 * Faults inside the service itself, as opposed to faults of the connection. The world applies such a fault while it
 * handles a request, so a simulation needs no socket for it.
 */
export type WorldFault =
  /** 429 below the plan's limit. */
  | { kind: "spurious-429" }
  /** 500 INTERNAL_ERROR, before the request is examined. */
  | { kind: "internal-error" }
  /** 500 GENERATION_ERROR to a valid generate; charged or not as the switches say. */
  | { kind: "generation-error" }
  /** The task will fail with this error. */
  | { kind: "task-fails"; error: string }
  /** The task stays `processing` for good. */
  | { kind: "task-never-finishes" }
  /** The task answers 404 once this much time has passed since its creation. */
  | { kind: "task-vanishes"; afterMs: number };
