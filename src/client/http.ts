import { createReadStream } from "node:fs";
import { errors, Pool } from "undici";
import type { Clock } from "../clock.js";
import type { ApiRequest, Reply, Send } from "../core/ports/send.js";
import { codingsOf, decoded } from "../encoding.js";
import { proxied } from "../proxy/tunnel.js";
import type { Proxies } from "../proxy/variables.js";
import { type RequestWatch, watched } from "../proxy/watch.js";

/**
 * One request over HTTP, once: no retry, no redirect, no pipelining. Whether a failed request had left this machine is
 * judged by undici's `sendHeaders` event and never by an error code, because the same code comes for a connection that
 * was refused and for one that broke after the service had charged.
 */
export interface HttpOptions {
  /** Origin and optional path prefix, without a slash at the end. */
  baseUrl: string;
  key: string;
  clock: Clock;
  proxies?: Proxies | null;
}

/** The largest answer that is read, in bytes. A list of many thousands of models is smaller. */
const bodyBytesMax = 32 * 1024 * 1024;
const connectMsMax = 10_000;

/** Opens the connections to a service. `close` ends them; requests in flight are aborted. */
export function openHttp({ baseUrl, key, clock, proxies = null }: HttpOptions): {
  send: Send;
  close(): Promise<void>;
} {
  // A paid request gets a connection of its own. On a reused one it could meet the server closing it, and then nobody
  // knows whether it was charged. A recent answer and a stated `Keep-Alive: timeout` only rule out the server's idle
  // timer: one that restarts, or a proxy that reloads, closes all idle connections at once and without notice, but lets
  // a request on a new connection end. test/bench/README.md says what a new connection costs.
  const { origin, pathname } = new URL(baseUrl);
  const connections = (pipelining: number) => {
    const options = { pipelining, connect: { timeout: connectMsMax } };
    return proxies === null ? new Pool(origin, options) : proxied(proxies, options);
  };
  const [paid, free] = [connections(0), connections(1)];
  const prefix = pathname.replace(/\/$/, "");

  const send: Send = async (request, signal) => {
    const watch: RequestWatch = { sent: false };
    const ended = new AbortController();
    const abort = signal ? AbortSignal.any([ended.signal, signal]) : ended.signal;
    void clock.sleep(request.timeoutMs, ended.signal).then(() => ended.signal.aborted || ended.abort());
    let status: number | undefined;
    try {
      const pending = watched(watch, () =>
        (request.method === "POST" ? paid : free).request({
          origin,
          path: prefix + request.path,
          method: request.method,
          headers: headersOf(request, key),
          body: request.file ? createReadStream(request.file.path) : (request.body ?? null),
          headersTimeout: 0,
          bodyTimeout: 0,
          signal: abort,
        }),
      );
      const response = await pending;
      status = response.statusCode;
      const headers = flat(response.headers);
      const body = await readText(response.body, codingsOf(headers));
      return { kind: "answer", status, headers, body };
    } catch (error) {
      const reason = signal?.aborted ? "interrupted" : abort.aborted ? "timeout" : describe(error, proxies);
      if (!watch.sent) return { kind: "not_sent", reason };
      return { kind: "no_answer", reason, ...(status === undefined ? {} : { status }) } satisfies Reply;
    } finally {
      // Given a reason, abort does not create an error with a stack.
      ended.abort("ended");
    }
  };

  return {
    send,
    close: async () => {
      await Promise.all([paid.destroy(), free.destroy()]);
    },
  };
}

function headersOf(request: ApiRequest, key: string): Record<string, string> {
  return {
    accept: "application/json",
    authorization: `Bearer ${key}`,
    ...(request.body === undefined ? {} : { "content-type": "application/json" }),
    ...(request.file === undefined ? {} : { "content-type": request.file.type }),
    ...(request.repeatKey === undefined ? {} : { "idempotency-key": request.repeatKey }),
  };
}

/** The text of an answer. One that is complete and cannot be decoded is an answer all the same: it is read as it came. */
async function readText(body: AsyncIterable<Uint8Array>, codings: readonly string[]): Promise<string> {
  const raw = await readAll(body);
  const content =
    codings.length === 0 ? raw : await readAll(decoded(inOnePiece(raw), codings)).catch(() => raw);
  return new TextDecoder(encodingOf(content), { ignoreBOM: true }).decode(content);
}

/** UTF-8, unless its first bytes say otherwise: byte order marks of UTF-16, or a first character of ASCII in two bytes. */
function encodingOf(content: Buffer): "utf-8" | "utf-16le" | "utf-16be" {
  const [first, second] = content;
  if ((first === 0xff && second === 0xfe) || (content.length > 1 && second === 0)) return "utf-16le";
  return (first === 0xfe && second === 0xff) || (content.length > 1 && first === 0) ? "utf-16be" : "utf-8";
}

async function* inOnePiece(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function readAll(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new Error(`answer larger than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function flat(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name.toLowerCase(), Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
}

/** The error with its causes, in one line, such as `connect ECONNREFUSED 127.0.0.1:80`. */
function describe(error: unknown, proxies: Proxies | null): string {
  if (error instanceof AggregateError && error.errors.length > 0) return describe(error.errors[0], proxies);
  if ((error as NodeJS.ErrnoException).code === "ERR_SSL_WRONG_VERSION_NUMBER")
    return proxies === null
      ? "the server does not speak HTTPS; try http:// in its address"
      : `the server, or the proxy (${proxies.from}), does not speak HTTPS`;
  if (error instanceof errors.SocketError || (error as NodeJS.ErrnoException).code === "ECONNRESET")
    return "the connection was reset";
  if (error instanceof errors.UndiciError) return `${error.message} (${error.code})`;
  return error instanceof Error ? error.message : String(error);
}
