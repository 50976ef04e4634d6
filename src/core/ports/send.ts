import type { Endpoint } from "../../api/endpoints.js";

/**
 * One request to the service and its outcome, as data. "No answer" is an outcome of its own, not an error: for a paid
 * request it means that the charge is unknown, and only evidence may settle it.
 */
export interface ApiRequest {
  endpoint: Endpoint;
  method: "GET" | "POST" | "PUT";
  /** Path and query below the base address. */
  path: string;
  /** JSON text of the body. */
  body?: string;
  /** A file to be sent in place of a body: its path, and its media type. */
  file?: { path: string; type: string };
  /** The same whenever this request is repeated. */
  repeatKey?: string;
  /** Milliseconds until the answer counts as lost. */
  timeoutMs: number;
  /** The slot reserved for it; without one the request waits for a slot. */
  ticket?: Ticket;
  /** Awaited once it has its slot, just before it is sent. */
  onSlot?(): Promise<void>;
}

export type Reply =
  | { kind: "answer"; status: number; headers: Readonly<Record<string, string>>; body: string }
  /** The request's headers never left this machine, so the service cannot have seen it. */
  | { kind: "not_sent"; reason: string }
  /** The request was or may have been sent; no complete answer came. */
  | { kind: "no_answer"; reason: string; status?: number };

export type Send = (request: ApiRequest, signal?: AbortSignal) => Promise<Reply>;

/** A reserved slot in the account's quota: the id of its line in the quota ledger. */
export interface Ticket {
  id: number;
  /** Nothing limits the account, so the line is not needed once the request is answered. */
  isUnlimited?: boolean;
}

/** A media download: not an API request, uses no quota and carries no key. */
export type Download = (url: string, options: DownloadOptions) => Promise<DownloadReply>;

export interface DownloadOptions {
  headers: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

export interface DownloadReply {
  status: number;
  headers: Readonly<Record<string, string>>;
  /** Rejects when the transfer breaks off. */
  body: AsyncIterable<Uint8Array>;
}

/** The log. Facts first, then a short sentence; never secrets. */
export interface Log {
  debug(facts: object, message: string): void;
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}
