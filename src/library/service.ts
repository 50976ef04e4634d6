import { EarlyExit } from "../core/exit.js";
import type { Log } from "../core/ports/send.js";
import type { ServiceConnection } from "../job/workspace/account.js";
import { checkedAddress, checkedKey, isThisMachine } from "../job/workspace/connection.js";
import { sandboxKey } from "../sandbox/state/state.js";

/** Which service, with which key. What `createSandbox` returns is one. */
export interface ServiceAddress {
  /** Such as `https://service.example`, without `/api/v1`; http only for this machine. */
  baseUrl: string;
  /** `svc_` and 32 letters or digits. It is sent to the service, and never written, logged or put into an error. */
  apiKey: string;
  /**
   * It is a sandbox on this machine: what is made there is kept apart, and never counts for a real run. Only the public
   * key of the sandbox is accepted then.
   */
  sandbox?: boolean;
}

/** Throws EarlyExit for an address or a key that nothing may be sent to. */
export function connectionOf({ baseUrl, apiKey, sandbox = false }: ServiceAddress): ServiceConnection {
  const where = checkedAddress(baseUrl);
  const key = checkedKey({ value: apiKey, from: "apiKey" });
  if (!sandbox) return { ...where, key, sandbox };
  if (key !== sandboxKey || !isThisMachine(new URL(where.baseUrl)))
    throw new EarlyExit(
      "usage",
      `sandbox: expected the address and the key of a sandbox on this machine, got ${where.baseUrl} with ${key === sandboxKey ? "the sandbox's key" : "another key"}. Nothing was sent. What a paid service makes must not be kept as a rehearsal.`,
    );
  return { origin: "sandbox", baseUrl: where.baseUrl, key, sandbox };
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
