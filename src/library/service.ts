import { sandboxKey } from "../api/key.js";
import { EarlyExit } from "../core/exit.js";
import type { Log } from "../core/ports/send.js";
import type { Environment } from "../text/environment.js";
import type { ServiceConnection } from "../workspace/account.js";
import { checkedAddress, checkedKey, checkedProxies, isThisMachine } from "../workspace/connection.js";

/** The service to use, with a key. The result of `createSandbox` is a ServiceAddress too. */
export interface ServiceAddress {
  /** For example `https://service.example`, without `/api/v1`; http only for this machine. */
  baseUrl: string;
  /** `svc_` and 32 letters or digits. It is sent to the service, and never written, logged or put into an error. */
  apiKey: string;
  /**
   * The service is a sandbox on this machine: its items are kept apart and never count for a real run. Only the public
   * key of the sandbox is accepted.
   */
  sandbox?: boolean;
  /**
   * Agree that this address gets the key, although this machine knows the key from another address. Without it, such a key
   * is not sent.
   */
  trustAddress?: boolean;
}

/**
 * Throws EarlyExit if the address or the key is not valid.
 * @internal
 */
export function connectionOf(service: ServiceAddress, environment: Environment): ServiceConnection {
  checkGiven(service);
  const { baseUrl, apiKey, sandbox = false } = service;
  const where = checkedAddress(baseUrl);
  const keyFrom = "service.apiKey";
  const key = checkedKey({ value: apiKey, from: keyFrom });
  if (!sandbox)
    return {
      ...where,
      key,
      keyFrom,
      addressFrom: "service.baseUrl",
      trustAddress: service.trustAddress ?? false,
      sandbox,
      proxies: checkedProxies(environment),
    };
  if (key !== sandboxKey || !isThisMachine(new URL(where.baseUrl)))
    throw new EarlyExit(
      "usage",
      `sandbox: expected the address and the key of a sandbox on this machine, got ${where.baseUrl} with ${key === sandboxKey ? "the sandbox's key" : "another key"}. Nothing was sent. What a paid service makes must not be kept as a rehearsal.`,
    );
  return { origin: "sandbox", baseUrl: where.baseUrl, key, sandbox };
}

/** A program may read both from variables that are not set, whatever their types say. */
function checkGiven(service: Partial<ServiceAddress> | null | undefined): void {
  const missing = (["baseUrl", "apiKey"] as const).find((name) => typeof service?.[name] !== "string");
  if (missing === undefined) return;
  const got = service === undefined || service === null ? "no service" : `${typeof service[missing]}`;
  throw new EarlyExit(
    missing === "apiKey" ? "key" : "usage",
    `service.${missing}: expected a text, got ${got}. If it comes from an environment variable, check that the variable is set. Nothing was sent.`,
  );
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
