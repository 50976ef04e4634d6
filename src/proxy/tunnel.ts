import ipaddr from "ipaddr.js";
import { Agent, type Dispatcher, EnvHttpProxyAgent, errors, Pool } from "undici";
import type { Proxies } from "./variables.js";

/**
 * Opens connections as an Agent does, through a proxy if there is one for the host. Even plain http goes through a
 * tunnel, so a proxy cannot answer in place of the service.
 */
export function proxied(proxies: Proxies, options: Agent.Options, connectMsMax = 10_000): EnvHttpProxyAgent {
  const timeout = { timeout: connectMsMax };
  return new EnvHttpProxyAgent({
    ...options,
    httpProxy: proxies.http,
    httpsProxy: proxies.https,
    noProxy: proxies.except,
    clientFactory: (proxy, settings) =>
      toProxy(new Pool(proxy, { ...settings, headersTimeout: connectMsMax }), proxies.from),
    proxyTls: timeout,
    requestTls: timeout,
  });
}

/**
 * Connections to one provider, through a proxy if there is one for its host. An address of a private network, such as that of a
 * machine with ComfyUI, is in reach without one.
 */
export function connectionsTo(url: URL, proxies: Proxies | null, options: Agent.Options): Dispatcher {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isNear = ipaddr.isValid(host) && ipaddr.process(host).range() !== "unicast";
  return proxies === null || isNear ? new Agent(options) : proxied(proxies, options);
}

/**
 * Asks the proxy for tunnels, and says in plain words why there is none. To undici a connection that ends is a reason to
 * make another one, so without errors of our own it would ask a proxy that hangs up again and again.
 */
function toProxy(pool: Pool, from: string): Dispatcher {
  const connect = pool.connect.bind(pool);
  return Object.assign(pool, {
    async connect(asked: Dispatcher.ConnectOptions) {
      const tunnel = await connect(asked).catch((error: Error) => {
        const why = error instanceof errors.HeadersTimeoutError ? "no answer in time" : error.message;
        throw new Error(`the proxy (${from}) opens no tunnel: ${why}`, { cause: error });
      });
      const { statusCode, socket } = tunnel;
      if (statusCode === 200) return tunnel;
      socket.on("error", () => {}).destroy();
      const login = statusCode === 407 ? "; it wants a login, as in http://USER:PASSWORD@HOST:PORT" : "";
      throw new Error(`the proxy (${from}) answered ${statusCode}${login}`);
    },
  });
}
