import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, isIP } from "node:net";
import { hostname } from "node:os";
import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { written } from "../service/answers/reply.js";
import {
  answerClientErrors,
  type HttpEnv,
  type HttpHandlers,
  headerBytesMax,
  httpApp,
  isLoopbackHost,
  readRequest,
  unreadable,
} from "../service/http/http.js";
import { OwnService, type OwnServiceOptions } from "./own-service.js";

export interface ServedOptions extends OwnServiceOptions {
  /** 127.0.0.1 by default. */
  host?: string;
  /** 0, the default, lets the system choose. */
  port?: number;
  tls?: { cert: string; key: string };
  /** The address under which others reach it, such as that of a proxy; by default the one it listens on. */
  publicUrl?: string;
}

export interface RunningService {
  /** What clients use as base URL. */
  url: string;
  /** The address that it listens on itself, which is another one behind a proxy. */
  ownUrl: string;
  service: OwnService;
  /** Resolves when all that was sent has been answered and everything is on disk. */
  close(): Promise<void>;
}

/** Serves a models file. Rejects with ModelsFileError, or when the port is taken or the state cannot be used. */
export async function serveModels(options: ServedOptions): Promise<RunningService> {
  const { host = "127.0.0.1", port = 0, tls, publicUrl } = options;
  let origin = publicUrl?.replace(/\/+$/, "") ?? "";
  const service = await OwnService.open(options, () => origin);
  const listener = getRequestListener(appOf(service, options, host).fetch, { errorHandler: unreadable });
  const settings = { maxHeaderSize: headerBytesMax, requireHostHeader: false };
  const server: Server = tls
    ? createTlsServer({ ...settings, ...tls }, listener)
    : createServer(settings, listener);
  answerClientErrors(server);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, () => resolve());
    });
  } catch (error) {
    await service.close();
    throw error;
  }
  const { address, family, port: actual } = server.address() as AddressInfo;
  // The address of all networks is nobody's own.
  const isAnywhere = address === "0.0.0.0" || address === "::";
  const own = family === "IPv6" ? `[${address}]` : address;
  // A name that was given is the one in the certificate.
  const name = isAnywhere ? hostname() : isIP(host) === 0 ? host : own;
  const url = `${tls ? "https" : "http"}://${name}:${actual}`;
  if (origin === "") origin = url;
  await service.start();
  return {
    url: origin,
    ownUrl: url,
    service,
    async close() {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      await service.close();
    },
  };
}

function appOf(service: OwnService, { clock, publicUrl }: ServedOptions, host: string): Hono<HttpEnv> {
  const handlers: HttpHandlers = {
    async exchange(request) {
      const { status, headers, body } = written(await service.api(request));
      const dated = { Date: new Date(clock.now()).toUTCString(), ...headers };
      return { reply: { status, headers: dated, body }, breaksAt: null, bytesPerSecond: null };
    },
    async download(path, query) {
      const found = await service.file(path, query);
      return "path" in found ? found : written(found);
    },
    sleep: (ms) => clock.sleep(ms),
  };
  const app = new Hono<HttpEnv>();
  app.post("/api/v1/task/:id/cancel", async (context) =>
    sent(written(await service.cancel(await readRequest(context), context.req.param("id")))),
  );
  app.put("/api/v1/inputs", async (context) => {
    const { method, path } = context.req;
    const request = { method, path, query: {}, headers: context.req.header(), body: null };
    return sent(written(await service.putInput(request, bodyOf(context))));
  });
  const names = publicUrl === undefined ? [] : [new URL(publicUrl).hostname];
  // A page in a browser on this machine can reach what listens here alone, by a name of its own.
  app.route("/", httpApp(handlers, { anyHost: !isLoopbackHost(host), names }));
  return app;
}

async function* bodyOf(context: Context<HttpEnv>): AsyncIterable<Uint8Array> {
  const incoming = (context.env as HttpEnv["Bindings"] | undefined)?.incoming;
  if (incoming) yield* incoming as AsyncIterable<Uint8Array>;
  else if (context.req.raw.body) yield* context.req.raw.body as unknown as AsyncIterable<Uint8Array>;
}

function sent({
  status,
  headers,
  body,
}: {
  status: number;
  headers: Record<string, string>;
  body: string;
}): Response {
  return new Response(body === "" ? null : body, { status, headers });
}
