/** Timers and network of the pages of a service: their other files take them from here. */

/** Calls back once after that many milliseconds, unless it is stopped before. */
export function after(ms: number, then: () => void): () => void {
  const timer = setTimeout(then, ms);
  return () => clearTimeout(timer);
}

export function request(path: string, init: RequestInit): Promise<Response> {
  return fetch(path, { ...init, cache: "no-store", credentials: "same-origin", redirect: "error" });
}
