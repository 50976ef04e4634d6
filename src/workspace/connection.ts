import { isKeyForm, keyPrefix } from "../api/key.js";
import { EarlyExit } from "../core/exit.js";
import { type Proxies, ProxyError, proxiesIn } from "../proxy/variables.js";
import type { Environment } from "../text/environment.js";

/** The key, if it has the form of one. Throws EarlyExit. */
export function checkedKey({ value: given, from }: { value: string; from: string }): string {
  // A key that is copied often brings a blank or a line break along.
  const value = given.trim();
  if (isKeyForm(value)) return value;
  throw new EarlyExit(
    "key",
    `the API key from ${from} has the wrong form: expected svc_ and 32 letters or digits, got ${shapeOf(value)}. Nothing was sent.`,
  );
}

/** Describes a malformed key without showing it. */
export function shapeOf(key: string): string {
  return `${key.length} characters ${key.startsWith("svc_") ? "beginning with svc_" : "that do not begin with svc_"}`;
}

/** A value as it was given, unless it is a key in the wrong place. */
function withoutKey(value: string): string {
  return value.includes(keyPrefix) ? "what looks like an API key" : JSON.stringify(value);
}

/** A base URL without a slash at its end. Throws EarlyExit for one that requests must not go to. */
export function checkedAddress(baseUrl: string): { origin: string; baseUrl: string } {
  const expected = "expected an address such as https://service.example";
  if (!URL.canParse(baseUrl))
    throw new EarlyExit("usage", `base URL: ${expected}, got ${withoutKey(baseUrl)}`);
  const url = new URL(baseUrl);
  if (url.username || url.password || url.search || url.hash) {
    throw new EarlyExit("usage", `base URL: ${expected} without user, query or fragment`);
  }
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isThisMachine(url))) {
    throw new EarlyExit(
      "usage",
      `base URL: ${expected}, got ${url.protocol}//${url.host} (http only for this machine)`,
    );
  }
  if (/\/api\/v1\/*$/.test(url.pathname)) {
    const rest = url.origin + url.pathname.replace(/\/api\/v1\/*$/, "");
    throw new EarlyExit("usage", `base URL: leave off /api/v1: ${rest}`);
  }
  const clean = url.origin + url.pathname.replace(/\/+$/, "");
  return { origin: clean, baseUrl: clean };
}

/** The proxies that the environment names. Throws EarlyExit. */
export function checkedProxies(environment: Environment): Proxies | null {
  try {
    return proxiesIn(environment);
  } catch (error) {
    if (error instanceof ProxyError) throw new EarlyExit("usage", `${error.message}. Nothing was sent.`);
    throw error;
  }
}

/** Whether an address is on this machine, so that requests do not leave it. */
export function isThisMachine({ hostname }: URL): boolean {
  return ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
}
