import type { RefusedAnswer } from "../../../documents/page.js";
import { after, otherTabs, remember, remembered, request } from "../system.js";

/** Every request to the dashboard's server. The token goes in a header, which no other site can set. */

/** Takes the token of the printed link out of the address, and keeps it for this tab. Returns whether there was one. */
export function takeToken(): boolean {
  const [, token] = /^#token=(\S+)$/.exec(location.hash) ?? [];
  if (token === undefined) return false;
  remember("token", token);
  history.replaceState(null, "", "#/");
  return true;
}

const patienceMs = 500;

/** A link that is opened in a new tab has no token: another tab of this page gives it. Resolves when it need not wait. */
export function shareToken(): Promise<void> {
  const tabs = otherTabs();
  return new Promise((resolve) => {
    tabs.addEventListener("message", ({ data }: MessageEvent<{ token: string | null }>) => {
      const own = remembered("token");
      if (data.token === null) {
        if (own !== null) tabs.postMessage({ token: own });
        return;
      }
      if (own === null) remember("token", data.token);
      resolve();
    });
    if (remembered("token") !== null) return resolve();
    tabs.postMessage({ token: null });
    after(patienceMs, resolve);
  });
}

/** The server answered, but not with what was asked for. */
export class ServerRefusal extends Error {
  override readonly name = "ServerRefusal";
  constructor(
    readonly kind: RefusedAnswer["error"]["kind"],
    message: string,
  ) {
    super(message);
  }
}

/** There is no server any more. */
export class NoServer extends Error {
  override readonly name = "NoServer";
}

export async function get<T>(path: string, signal: AbortSignal | null = null): Promise<T> {
  return answerOf<T>(await send(path, { signal }));
}

export async function post<T>(path: string, body: object): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return answerOf<T>(await send(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

export async function postFile<T>(path: string, file: Blob): Promise<T> {
  const headers = { "Content-Type": "application/octet-stream" };
  return answerOf<T>(await send(path, { method: "POST", headers, body: file }));
}

/** Throws ServerRefusal or NoServer; an aborted request rejects with the abort itself. */
export async function send(path: string, init: RequestInit): Promise<Response> {
  const authorization = { Authorization: `Bearer ${remembered("token") ?? ""}` };
  let answer: Response;
  try {
    answer = await request(path, { ...init, headers: { ...init.headers, ...authorization } });
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new NoServer("bulkgen dashboard has ended; start it again");
  }
  if (answer.ok) return answer;
  const refusal = (await answer.json().catch(() => null)) as RefusedAnswer | null;
  const { kind, message } = refusal?.error ?? {
    kind: answer.status === 404 ? ("missing" as const) : ("broken" as const),
    message: `the dashboard answered ${answer.status}`,
  };
  throw new ServerRefusal(kind, message);
}

async function answerOf<T>(answer: Response): Promise<T> {
  return (await answer.json()) as T;
}

/** The path with those parameters that have a value. */
export function withQuery(path: string, query: Record<string, string | number | null>): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== "");
  if (given.length === 0) return path;
  return `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}
