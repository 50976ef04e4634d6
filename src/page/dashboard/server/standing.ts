import { useEffect, useState } from "preact/hooks";
import type { Standing } from "../../../documents/page.js";
import { after, isHidden, onVisibility } from "../system.js";
import { get, ServerRefusal, send } from "./client.js";

/**
 * What the page shows all the time, from one stream that is opened again when it ends. A hidden tab asks now and then
 * instead: a browser has six connections to a server for all its tabs, and a stream occupies one.
 */

export interface Connection {
  /** The last known one, also after the server has gone. */
  standing: Standing | null;
  /** "token": this tab has no valid token, and asking again is of no use. */
  state: "connecting" | "live" | "lost" | "token";
}

let connection: Connection = { standing: null, state: "connecting" };
const listeners = new Set<(connection: Connection) => void>();

export function useConnection(): Connection {
  const [seen, setSeen] = useState(connection);
  useEffect(() => {
    setSeen(connection);
    listeners.add(setSeen);
    return () => {
      listeners.delete(setSeen);
    };
  }, []);
  return seen;
}

/** Calls back with every change of the connection. Returns how to stop that. */
export function onConnection(listener: (connection: Connection) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function currentStanding(): Standing | null {
  return connection.standing;
}

function change(to: Partial<Connection>): void {
  connection = { ...connection, ...to };
  for (const listener of [...listeners]) listener(connection);
}

const firstDelayMs = 500;
const longestDelayMs = 8_000;
const hiddenMs = 5_000;
let delayMs = firstDelayMs;
let stream = new AbortController();
let stopWaiting: (() => void) | null = null;

/** Follows the standing as long as the page is open. */
export function followStanding(): void {
  onVisibility(() => (isHidden() ? stream.abort() : tryAgain()));
  void readOn();
}

async function readOn(): Promise<void> {
  stopWaiting = null;
  stream = new AbortController();
  const { signal } = stream;
  const show = (standing: Standing) => {
    delayMs = firstDelayMs;
    change({ standing, state: "live" });
  };
  try {
    if (isHidden()) {
      show(await get<Standing>("/api/standing"));
      stopWaiting = after(hiddenMs, () => void readOn());
      return;
    }
    const answer = await send("/api/events", { headers: { Accept: "text/event-stream" }, signal });
    for await (const standing of standingsIn(answer)) show(standing);
  } catch (error) {
    if (error instanceof ServerRefusal && error.kind === "token") return change({ state: "token" });
  }
  if (signal.aborted) return readOn();
  change({ state: delayMs === firstDelayMs ? "connecting" : "lost" });
  stopWaiting = after(delayMs, () => void readOn());
  delayMs = Math.min(longestDelayMs, delayMs * 2);
}

/** Asks at once whether the server is there again. */
export function tryAgain(): void {
  if (stopWaiting === null) return;
  stopWaiting();
  void readOn();
}

async function* standingsIn(answer: Response): AsyncGenerator<Standing> {
  const reader = answer.body?.getReader();
  if (reader === undefined) return;
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true }).replaceAll("\r\n", "\n");
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const data = event
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5).trimStart());
      if (data.length > 0) yield JSON.parse(data.join("\n")) as Standing;
    }
  }
}
