import zlib from "node:zlib";
import { errors } from "undici";
import type { Clock } from "../clock.js";
import { connectionsTo } from "../proxy/tunnel.js";
import type { Proxies } from "../proxy/variables.js";
import { type RequestWatch, watched } from "../proxy/watch.js";
import { shortText } from "../text/terminal.js";
import { JobLater, JobRefused } from "./provider.js";

/**
 * One HTTP request to a provider, once: no retry, no redirect. Each gets a connection of its own, so that it never
 * meets the server closing a reused one. If it breaks once the request has begun to leave, nobody knows what became of it, and the
 * error says no more than what broke.
 */
export interface ProviderRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  url: URL;
  headers: Record<string, string>;
  body?: string | Uint8Array;
  /** How long it may go unanswered, and how long its answer may take to arrive. */
  timeoutMs: number;
}

export interface ProviderAnswer {
  status: number;
  /** By their lower-case names. */
  headers: Record<string, string>;
  body: Buffer;
}

export interface Sender {
  /** A request that may cost money. Throws `JobLater` if it certainly never left, and `JobRefused` if it never can. */
  pay(request: ProviderRequest, signal: AbortSignal): Promise<ProviderAnswer>;
  /** A request that costs nothing. Throws plain errors only. */
  ask(request: ProviderRequest, signal: AbortSignal): Promise<ProviderAnswer>;
}

/** The largest answer that is read (bytes). A film in base64 is smaller. */
const bodyBytesMax = 200 * 1024 * 1024;
const connectionOptions = { connect: { timeout: 10_000 }, headersTimeout: 0, bodyTimeout: 0 };
/** How long to wait for a server that cannot be reached. */
const unreachableMs = 30_000;
const retryAfterMsMax = 24 * 60 * 60_000;

export interface SenderParts {
  clock: Clock;
  key(): string | null;
  proxies?: Proxies | null | undefined;
}

export function openSender({ clock, key, proxies = null }: SenderParts): Sender {
  async function send(
    request: ProviderRequest,
    signal: AbortSignal,
    watch: RequestWatch = { sent: false },
  ): Promise<ProviderAnswer> {
    const { method, url, headers, body, timeoutMs } = request;
    const connection = connectionsTo(url, proxies, connectionOptions);
    const ended = new AbortController();
    let isLate = false;
    void clock.sleep(timeoutMs, ended.signal).then(() => {
      isLate = !ended.signal.aborted;
      ended.abort();
    });
    try {
      const response = await watched(watch, () =>
        connection.request({
          origin: url.origin,
          path: url.pathname + url.search,
          method,
          headers: { "accept-encoding": "identity", ...headers },
          body: body ?? null,
          signal: AbortSignal.any([ended.signal, signal]),
        }),
      );
      const plain = flat(response.headers);
      return { status: response.statusCode, headers: plain, body: await readAll(response.body, plain) };
    } catch (error) {
      if (error instanceof errors.InvalidArgumentError) throw error;
      const reason = signal.aborted
        ? "it was stopped"
        : isLate
          ? `no complete answer within ${Math.round(timeoutMs / 1000)} s`
          : describe(error);
      throw new Error(fromProvider(`${method} ${url.host}${url.pathname}: ${reason}`, key()));
    } finally {
      // Given a reason, abort does not create an error with a stack.
      ended.abort("ended");
      await connection.destroy();
    }
  }

  return {
    async pay(request, signal) {
      if (signal.aborted) throw new JobLater("stopped before the request was sent", 0, "job");
      const watch: RequestWatch = { sent: false };
      try {
        return await send(request, signal, watch);
      } catch (error) {
        if (watch.sent) throw error;
        const why = fromProvider((error as Error).message, key());
        if (error instanceof errors.InvalidArgumentError)
          throw new JobRefused("provider", `the request cannot be sent: ${why}`, false);
        throw new JobLater(`the request was not sent: ${why}`, unreachableMs, "provider");
      }
    },
    ask: (request, signal) => send(request, signal),
  };
}

/** How long the answer asks to wait (ms); null if it does not say. */
export function retryAfterMs(headers: ProviderAnswer["headers"], now: number): number | null {
  const said = headers["retry-after"]?.trim();
  if (said === undefined || said === "") return null;
  if (/^\d+(\.\d+)?$/.test(said)) return bounded(Number(said) * 1000);
  const until = Date.parse(said);
  if (Number.isNaN(until)) return null;
  // The two clocks may differ, so a date is taken as the server's.
  const sent = Date.parse(headers["date"] ?? "");
  return bounded(until - (Number.isNaN(sent) ? now : sent));
}

function bounded(ms: number): number {
  return Math.min(Math.max(0, Math.ceil(ms)), retryAfterMsMax);
}

/** Text of a provider as one short line, without the key. */
export function fromProvider(text: string, key: string | null): string {
  const forms =
    key === null || key === "" ? [] : [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)];
  const clean = forms.reduce((rest, form) => rest.replaceAll(form, "[key]"), text);
  return shortText(clean, 500);
}

async function readAll(body: AsyncIterable<Uint8Array>, headers: ProviderAnswer["headers"]): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new Error(`the answer has more than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  return decoded(Buffer.concat(chunks), headers["content-encoding"]?.trim().toLowerCase() ?? "");
}

/** Some servers compress although they were asked not to. */
function decoded(body: Buffer, coding: string): Buffer {
  const options = { maxOutputLength: bodyBytesMax };
  if (coding === "gzip" || coding === "x-gzip") return zlib.gunzipSync(body, options);
  if (coding === "br") return zlib.brotliDecompressSync(body, options);
  if (coding === "deflate") return zlib.inflateSync(body, options);
  return body;
}

function flat(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name.toLowerCase(), Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
}

/** The error in one line, such as `connect ECONNREFUSED 127.0.0.1:80`. */
function describe(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return describe(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  if (error instanceof errors.SocketError || (error as NodeJS.ErrnoException).code === "ECONNRESET")
    return "the connection was closed before the answer was complete";
  return error.message;
}
