import type { LookupFunction } from "node:net";
import type { Dispatcher } from "undici";
import type { Download, DownloadOptions, DownloadReply } from "../../core/ports/send.js";
import type { Proxies } from "../../proxy/variables.js";
import { AddressRefused, type AddressRule, addressRule } from "./address.js";

/** Redirects followed for one output. */
export const redirectsMax = 5;

export interface Downloads {
  /**
   * Fetches one output as it is sent: no coding is requested and none removed, and no credentials are sent. Rejects with AddressRefused for
   * a URL or a redirect to an address that is not allowed, and with another error when no answer came.
   */
  download: Download;
  /** Closes the sockets that are kept for reuse. */
  close(): Promise<void>;
}

export interface DownloadSettings {
  /** The service's base URL; see `addressRule` for what it permits. */
  baseUrl: string;
  /** Resolves names; the system's resolver when absent. */
  lookup?: LookupFunction;
  proxies?: Proxies | null;
}

export function undiciDownloads(settings: DownloadSettings): Downloads {
  const rule = addressRule(settings.baseUrl, settings.lookup);
  const { proxies = null } = settings;
  let agent: Promise<Dispatcher> | undefined;
  return {
    async download(url, options) {
      if (!URL.canParse(url)) throw new AddressRefused("the output address is not a URL");
      agent ??= openAgent(rule, proxies);
      // A proxy resolves names itself.
      const check = proxies === null ? rule.check : rule.checkName;
      return follow(new URL(url), options, check, await agent);
    },
    async close() {
      await (await agent)?.close();
    },
  };
}

async function openAgent(rule: AddressRule, proxies: Proxies | null): Promise<Dispatcher> {
  // Loaded late: it is slow to load, and most commands download nothing.
  const [{ Agent }, { proxied }] = await Promise.all([import("undici"), import("../../proxy/tunnel.js")]);
  // The caller sets all timeouts through `signal`.
  const options = { connect: { lookup: rule.lookup }, headersTimeout: 0, bodyTimeout: 0 };
  return proxies === null ? new Agent(options) : proxied(proxies, options);
}

async function follow(
  first: URL,
  options: DownloadOptions,
  check: AddressRule["check"],
  agent: Dispatcher,
): Promise<DownloadReply> {
  let url = first;
  for (let redirects = 0; ; redirects++) {
    await check(url);
    const reply = await agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: "GET",
      signal: options.signal,
      headers: { accept: "*/*", "accept-encoding": "identity", "user-agent": "bulkgen", ...options.headers },
    });
    const headers = flatten(reply.headers);
    const location = redirectTarget(reply.statusCode, headers);
    if (location === null) return { status: reply.statusCode, headers, body: reply.body };
    await reply.body.dump();
    if (redirects === redirectsMax) throw new AddressRefused(`more than ${redirectsMax} redirects`);
    if (!URL.canParse(location, url))
      throw new AddressRefused("the output address redirects to something that is not a URL");
    url = new URL(location, url);
  }
}

function redirectTarget(status: number, headers: Readonly<Record<string, string>>): string | null {
  return [301, 302, 303, 307, 308].includes(status) ? (headers["location"] ?? null) : null;
}

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  return flat;
}
