import { createReadStream, openSync } from "node:fs";
import type { Server, ServerResponse } from "node:http";
import { type Duplex, Readable } from "node:stream";
import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { errorAnswer, ServiceRefusal, type WorldRequest } from "../answers/answers.js";
import {
  type FileAnswer,
  filePart,
  fileReply,
  type ServiceReply,
  type StoredFile,
  written,
} from "../answers/reply.js";
import { bodyBytesMax } from "../answers/request-body.js";

/**
 * What becomes of a request: an answer, which may come slowly and of which only a share may come before the connection breaks,
 * or a connection that breaks at once.
 */
export type Exchange =
  | { reply: ServiceReply; breaksAt: number | null; bytesPerSecond: number | null }
  | "hang up";

/** How a file is sent; nothing of it is set where all goes well. */
export interface FileSending {
  ignoresRange?: boolean;
  /** The share of it after which the connection breaks. */
  breaksAt?: number;
  /** After a share of it nothing comes for so many milliseconds. */
  stalls?: { at: number; ms: number };
}

export interface HttpHandlers {
  /** Answers an API request; its changes are committed when it resolves. */
  exchange(request: WorldRequest): Promise<Exchange>;
  /** Finds or makes the file of a signed URL, and says how it is sent. */
  download(
    path: string,
    query: Record<string, string>,
  ): Promise<ServiceReply | StoredFile | { file: FileAnswer; sending: FileSending }>;
  sleep(ms: number): Promise<void>;
}

/** Requests over a socket have these; those of a test do not. */
export type HttpEnv = { Bindings: Partial<HttpBindings> };

/** HTTP around the world: it reads requests, writes answers and decides nothing. */
export function httpApp(
  handlers: HttpHandlers,
  { anyHost = false, names = [] }: { anyHost?: boolean; names?: readonly string[] } = {},
): Hono<HttpEnv> {
  const app = new Hono<HttpEnv>();
  if (!anyHost) app.use(loopbackAnd(names));
  app.get("/files/*", async (context) => {
    const found = await handlers.download(context.req.path, context.req.query());
    if ("path" in found) return sendStored(context, found);
    return "file" in found ? sendFile(context, handlers, found.file, found.sending) : send(found);
  });
  app.all("*", async (context) => {
    const exchange = await handlers.exchange(await readRequest(context));
    if (exchange === "hang up") return hangUp(context);
    const { reply, breaksAt, bytesPerSecond } = exchange;
    if (breaksAt === null && bytesPerSecond === null) return send(reply);
    const bytes = Buffer.from(reply.body);
    const breaksAfter = breaksAt === null ? null : shareOf(bytes, breaksAt);
    return sendOddly(context, handlers, { ...reply, bytes, breaksAfter, pause: null, bytesPerSecond });
  });
  app.onError(() => send(refusal(500, "INTERNAL_ERROR", "Internal server error.")));
  return app;
}

function refusal(status: number, code: string, message: string): ServiceReply {
  return written(errorAnswer(new ServiceRefusal(status, code, message)));
}

/** A request with its body, as far as that may be read. */
export async function readRequest(context: Context<HttpEnv>): Promise<WorldRequest> {
  const { method, path } = context.req;
  // Asked in process, without a connection, there is no environment either.
  const incoming = (context.env as HttpEnv["Bindings"] | undefined)?.incoming;
  const bodiless = method === "GET" || method === "HEAD";
  // Read from the socket if there is one: a web stream around it costs as much as the rest of a request.
  const read = () => (incoming ? readIncoming(incoming) : readText(context.req.raw.body));
  const body = bodiless ? null : await read();
  return {
    method,
    path,
    query: context.req.query(),
    // Node has read them already. Only `set-cookie`, which no request has, would be a list.
    headers: incoming ? (incoming.headers as Record<string, string>) : context.req.header(),
    body: body === "too large" ? null : (body?.text ?? null),
    tooLarge: body === "too large",
  };
}

/** The body from a connection, as text. What comes beyond the limit is dropped as it arrives. */
function readIncoming(incoming: NodeJS.ReadableStream): Promise<{ text: string } | "too large"> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    let ended = false;
    incoming.on("data", (chunk: Uint8Array) => {
      size += chunk.byteLength;
      if (size <= bodyBytesMax) chunks.push(chunk);
      else resolve("too large");
    });
    incoming.once("end", () => {
      ended = true;
      resolve({ text: Buffer.concat(chunks).toString("utf8") });
    });
    incoming.once("error", reject);
    incoming.once("close", () => {
      if (!ended) reject(new Error("the connection closed before the body ended"));
    });
  });
}

/** The body as text. Reading stops at the limit, so that no client can fill the memory. */
async function readText(
  stream: ReadableStream<Uint8Array> | null,
): Promise<{ text: string } | "too large" | null> {
  if (!stream) return null;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.byteLength;
    if (size > bodyBytesMax) return "too large";
    chunks.push(chunk);
  }
  return { text: Buffer.concat(chunks).toString("utf8") };
}

function send({ status, headers, body }: ServiceReply): Response {
  return new Response(body === "" ? null : body, { status, headers });
}

function sendStored(context: Context<HttpEnv>, file: StoredFile): Response {
  const { status, headers, part } = filePart(
    file,
    context.req.header("range"),
    context.req.header("if-range"),
  );
  if (part === null || file.size === 0 || context.req.method === "HEAD")
    return new Response(null, { status, headers });
  // Opened now, it can be read to its end though it may be cleaned up meanwhile.
  const fd = openSync(file.path, "r");
  const stream = createReadStream(file.path, { fd, start: part.first, end: part.last });
  return new Response(Readable.toWeb(stream) as ReadableStream, { status, headers });
}

function sendFile(
  context: Context<HttpEnv>,
  handlers: HttpHandlers,
  file: FileAnswer,
  { ignoresRange, breaksAt, stalls }: FileSending,
): Response | Promise<Response> {
  const range = ignoresRange ? undefined : context.req.header("range");
  const { status, headers, bytes } = fileReply(file, range, context.req.header("if-range"));
  if (!bytes || (breaksAt === undefined && stalls === undefined))
    return new Response(bytes && whole(bytes), { status, headers });
  const pause = stalls === undefined ? null : { after: shareOf(bytes, stalls.at), ms: stalls.ms };
  const breaksAfter = breaksAt === undefined ? null : shareOf(bytes, breaksAt);
  return sendOddly(context, handlers, { status, headers, bytes, breaksAfter, pause, bytesPerSecond: null });
}

/** How many bytes a share of a body is; never all of it. */
export function shareOf(bytes: Uint8Array, share: number): number {
  return Math.min(Math.floor(bytes.byteLength * share), Math.max(0, bytes.byteLength - 1));
}

/** The bytes as a body: Response takes no view of a buffer that might be shared between threads. */
function whole(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
}

async function sendOddly(
  context: Context<HttpEnv>,
  handlers: HttpHandlers,
  delivery: FileDelivery,
): Promise<Response> {
  const { outgoing } = context.env;
  if (!outgoing) throw new Error("only a connection can break or be slow");
  await deliver(outgoing as Parameters<typeof deliver>[0], delivery, (ms) => handlers.sleep(ms));
  return RESPONSE_ALREADY_SENT;
}

function hangUp(context: Context<HttpEnv>): Response {
  const { outgoing } = context.env;
  if (!outgoing) throw new Error("only a connection can break");
  outgoing.destroy();
  return RESPONSE_ALREADY_SENT;
}

/** An answer that does not simply arrive. */
interface FileDelivery {
  status: number;
  headers: Record<string, string>;
  bytes: Uint8Array;
  /** Bytes after which the connection breaks; null if it does not. */
  breaksAfter: number | null;
  /** After this many bytes nothing comes for a while. */
  pause: { after: number; ms: number } | null;
  bytesPerSecond: number | null;
}

/** Writes an answer piece by piece, as slowly and as far as it is meant to come. Resolves when no more will be sent. */
async function deliver(
  outgoing: ServerResponse,
  delivery: FileDelivery,
  sleep: (ms: number) => Promise<void>,
): Promise<void> {
  const { status, headers, bytes, breaksAfter, pause, bytesPerSecond } = delivery;
  const end = breaksAfter ?? bytes.byteLength;
  outgoing.writeHead(status, { ...headers, "Content-Length": String(bytes.byteLength) });
  outgoing.flushHeaders();
  const steps = [pause?.after ?? 0, end].filter((to) => to <= end);
  let sent = 0;
  for (const step of steps) {
    while (sent < step) {
      const to = bytesPerSecond === null ? step : Math.min(step, sent + Math.ceil(bytesPerSecond / 10));
      if (!(await wrote(outgoing, bytes.subarray(sent, to)))) return;
      sent = to;
      if (bytesPerSecond !== null) await sleep(100);
    }
    if (sent === pause?.after) await sleep(pause.ms);
  }
  if (breaksAfter === null) outgoing.end();
  else outgoing.destroy();
}

/** Whether the bytes were sent; false if the client had disconnected. */
function wrote(outgoing: ServerResponse, bytes: Uint8Array): Promise<boolean> {
  if (outgoing.destroyed) return Promise.resolve(false);
  return new Promise((resolve) => {
    const gone = () => resolve(false);
    outgoing.once("close", gone);
    outgoing.write(bytes, (error) => {
      outgoing.off("close", gone);
      resolve(!error);
    });
  });
}

/**
 * A web page in a browser on this machine can resolve its own name to 127.0.0.1 and then talk to any server listening
 * there. Its requests carry that name as Host, so only names that always mean this machine are answered.
 */
const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

export function isLoopbackHost(host: string): boolean {
  return loopbackHost.test(host);
}

/** Answers 421 to a request that names another host; `names` are those of a proxy in front. */
function loopbackAnd(names: readonly string[]): MiddlewareHandler {
  return async (context, next) => {
    const host = context.req.header("host") ?? new URL(context.req.url).host;
    if (isLoopbackHost(host) || names.includes(host.replace(/:\d+$/, "").toLowerCase())) return next();
    const where = names.length === 0 ? "loopback names only" : `loopback names and ${names.join(", ")} only`;
    const refusal = new ServiceRefusal(421, "HOST_REFUSED", `This service answers on ${where}.`);
    const { status, headers, body } = written(errorAnswer(refusal));
    return new Response(body, { status, headers });
  };
}

export const loopbackOnly = loopbackAnd([]);

/** The most bytes that a request's line and headers may have together. */
export const headerBytesMax = 16 * 1024;

/** Answers what Node cannot read as a request in the shape of all errors, and hangs up. */
export function answerClientErrors(server: Server): void {
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    const { status, headers, body } = written(errorAnswer(refusalOf(error.code)));
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const length = Buffer.byteLength(body);
    socket.end(
      `HTTP/1.1 ${status} Refused\r\n${lines.join("")}Content-Length: ${length}\r\nConnection: close\r\n\r\n${body}`,
    );
  });
}

/** The answer to a request that HTTP allows, but whose address or host cannot be read. */
export function unreadable(): Response {
  const { status, headers, body } = written(errorAnswer(refusalOf(undefined)));
  return new Response(body, { status, headers });
}

function refusalOf(code: string | undefined): ServiceRefusal {
  if (code === "HPE_HEADER_OVERFLOW") {
    return new ServiceRefusal(
      431,
      "HEADERS_TOO_LARGE",
      `The headers may have ${headerBytesMax} bytes at most.`,
    );
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return new ServiceRefusal(408, "REQUEST_TIMEOUT", "The request took too long.");
  return new ServiceRefusal(400, "INVALID_REQUEST", "This request cannot be read.");
}
