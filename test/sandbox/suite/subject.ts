import type { MediaField } from "../../../src/api/inputs.js";
import type { SqliteState } from "../../../src/service/state/sqlite-state.js";

/** One request of the suite. The body is sent as it is. */
export interface Call {
  method: string;
  /** With the query. */
  path: string;
  headers: Record<string, string>;
  body?: string;
}

export interface Answer {
  status: number;
  /** By names in lower case. */
  headers: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: the suite reads bodies of every shape
  body: any;
}

/** A service that is held against its page. */
export interface Subject {
  key: string;
  send(call: Call): Promise<Answer>;
  /** Lets time pass: really, or by moving the service's clock. */
  wait(ms: number): Promise<void>;
  /** The status of an output's URL fetched without a key; absent where there are no files. */
  download?: (url: string) => Promise<number>;
  close(): Promise<void>;
  /** Its address; absent if it has no socket. */
  url?: string;
  /** What only a service in our own hands lets us do. */
  hands?: Hands;
}

export interface Hands {
  state: SqliteState;
  /** The account that the key belongs to. */
  accountId: string;
  revokedKey: string;
  /** Another key of the same account. */
  secondKey: string;
  strangersKey: string;
  /** Prompts whose tasks fail. */
  failing: readonly string[];
  /** An input of each kind that the service takes. */
  inputs: Readonly<Record<MediaField, string>>;
}

export function get(path: string, key: string): Call {
  return { method: "GET", path, headers: { authorization: `Bearer ${key}` } };
}

export function post(body: unknown, key: string): Call {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { method: "POST", path: "/api/v1/generate", headers, body: text };
}
