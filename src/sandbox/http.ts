import { type Context, Hono } from "hono";
import { errorAnswer, Refusal, type WorldRequest, type WorldResponse } from "./answers.js";
import { isLoopbackHost } from "./host-check.js";
import { written } from "./reply.js";
import { bodyBytesMax } from "./request-body.js";

/** One output file, ready to be sent. */
export interface FileAnswer {
  bytes: Uint8Array;
  contentType: string;
  /** Strong: equal bytes have equal tags. */
  etag: string;
}

export interface HttpHandlers {
  /** Answers an API request; its changes are committed when it returns. */
  api(request: WorldRequest): WorldResponse | Promise<WorldResponse>;
  /** Finds or makes the file of a signed URL. */
  file(path: string, query: Record<string, string>): Promise<FileAnswer | WorldResponse>;
}

/** HTTP around the world: it reads requests, writes answers and decides nothing. */
export function httpApp(handlers: HttpHandlers): Hono {
  const app = new Hono();
  app.use(async (context, next) => {
    const host = context.req.header("host") ?? new URL(context.req.url).host;
    if (isLoopbackHost(host)) return next();
    return send(
      errorAnswer(new Refusal(421, "HOST_REFUSED", "This sandbox answers on loopback names only.")),
    );
  });
  app.get("/files/*", async (context) => {
    const found = await handlers.file(context.req.path, context.req.query());
    return "bytes" in found ? sendFile(context, found) : send(found);
  });
  app.all("*", async (context) => send(await handlers.api(await readRequest(context))));
  app.onError((error) => send(errorAnswer(new Refusal(500, "INTERNAL_ERROR", error.message))));
  return app;
}

async function readRequest(context: Context): Promise<WorldRequest> {
  const { method, path } = context.req;
  const body = method === "GET" || method === "HEAD" ? null : await readText(context.req.raw.body);
  return {
    method,
    path,
    query: context.req.query(),
    headers: context.req.header(),
    body: body === "too large" ? null : (body?.text ?? null),
    tooLarge: body === "too large",
  };
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

function send(answer: WorldResponse): Response {
  const { status, headers, body } = written(answer);
  return new Response(body === "" ? null : body, { status, headers });
}

const byteRange = /^bytes=(\d+)-(\d*)$/;

/** Sends a file, or the one range of it that was asked for, as long as it is still the same file (If-Range). */
function sendFile(context: Context, file: FileAnswer): Response {
  const headers = {
    "Content-Type": file.contentType,
    ETag: file.etag,
    "Accept-Ranges": "bytes",
    "Cache-Control": "private, max-age=60",
  };
  const size = file.bytes.byteLength;
  const ifRange = context.req.header("if-range");
  const range =
    ifRange === undefined || ifRange === file.etag ? byteRange.exec(context.req.header("range") ?? "") : null;
  if (!range) {
    return new Response(whole(file.bytes), { headers: { ...headers, "Content-Length": String(size) } });
  }
  const first = Number(range[1]);
  const last = Math.min(range[2] ? Number(range[2]) : size - 1, size - 1);
  if (first > last) {
    return new Response(null, { status: 416, headers: { ...headers, "Content-Range": `bytes */${size}` } });
  }
  const part = file.bytes.subarray(first, last + 1);
  return new Response(whole(part), {
    status: 206,
    headers: {
      ...headers,
      "Content-Length": String(part.byteLength),
      "Content-Range": `bytes ${first}-${last}/${size}`,
    },
  });
}

/** The bytes as a body: Response takes no view of a buffer that might be shared between threads. */
function whole(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
}
