/**
 * What the command uses of undici, in place of its index: that loads fetch, WebSockets, caches and mocks as well, which
 * are half of its code. The names are exported one by one, so that the build fails where a module imports another.
 */
import api from "undici/lib/api/index.js";
import errors from "undici/lib/core/errors.js";
import Agent from "undici/lib/dispatcher/agent.js";
import Client from "undici/lib/dispatcher/client.js";
import Dispatcher from "undici/lib/dispatcher/dispatcher.js";
import EnvHttpProxyAgent from "undici/lib/dispatcher/env-http-proxy-agent.js";
import Pool from "undici/lib/dispatcher/pool.js";

// `connect` is what asks a proxy for a tunnel.
Object.assign(Dispatcher.prototype, { request: api.request, connect: api.connect });

/** A part of its own, for buckets alone. */
async function fetch(...request) {
  const { default: web } = await import("undici/lib/web/fetch/index.js");
  return web.fetch(...request);
}

export { Agent, Client, EnvHttpProxyAgent, errors, fetch, Pool };
