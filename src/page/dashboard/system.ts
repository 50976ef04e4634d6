/** The page's own clock, timers, network, storage and other tabs: every other file of the page takes them from here. */

export function now(): number {
  return Date.now();
}

/** Calls back once after that many milliseconds, unless it is stopped before. */
export function after(ms: number, then: () => void): () => void {
  const timer = setTimeout(then, ms);
  return () => clearTimeout(timer);
}

export function every(ms: number, then: () => void): () => void {
  const timer = setInterval(then, ms);
  return () => clearInterval(timer);
}

export function request(path: string, init: RequestInit): Promise<Response> {
  return fetch(path, { ...init, cache: "no-store", credentials: "omit", redirect: "error" });
}

/** What this tab remembers until it is closed. */
export function remembered(name: string): string | null {
  return sessionStorage.getItem(name);
}

export function remember(name: string, value: string): void {
  sessionStorage.setItem(name, value);
}

/** Messages between the tabs of this page; no other site can read them. */
export function otherTabs(): BroadcastChannel {
  return new BroadcastChannel("bulkgen");
}

export function isHidden(): boolean {
  return document.hidden;
}

/** Calls back whenever the tab is hidden or shown. */
export function onVisibility(then: () => void): void {
  document.addEventListener("visibilitychange", then);
}
