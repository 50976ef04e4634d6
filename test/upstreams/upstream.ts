import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What goes wrong with one request. Those with `after` come when the vendor has already done what it was asked. */
export type Trouble =
  | { status: number; retryAfter?: string; date?: string; body?: unknown }
  | { after: "drop" | "empty" | "html" | "truncated" | "wrong types" };

export interface Asked {
  method: string;
  /** With its query. */
  path: string;
  headers: Record<string, string>;
  body: Buffer;
  json: Record<string, unknown>;
  /** Of the client: another one is another connection. */
  port: number;
}

export interface Said {
  status?: number;
  headers?: Record<string, string>;
  /** Bytes as they are, anything else as JSON. */
  body?: unknown;
}

/** One line of the vendor's books. */
export interface Executed {
  id: string;
  prompt: string;
  billed: boolean;
  /** What was asked for, as it came. */
  input: Record<string, unknown>;
}

/** `submit` may cost money. */
export type Route = "submit" | "poll" | "result" | "cancel" | "list" | "other";

/** A vendor's stand-in: a server on a port of its own, its books, and switches for bad behaviour. */
export abstract class Upstream {
  /** What was made, or is being made, in the order in which it was asked for. */
  readonly books: Executed[] = [];
  readonly asked: Asked[] = [];
  /** How many polls a job takes. */
  polls = 1;
  /** Whether the addresses of results have expired. */
  expired = false;
  /** The time of the vendor's clock (UTC ms). */
  now = Date.UTC(2026, 0, 1);
  protected abstract readonly key: string;
  private readonly troubles: Record<string, Trouble[]> = {};
  private servers: Server[] = [];
  private count = 0;
  private hanging: (() => void) | null = null;

  /** The address of the first port, and of a second one for vendors that have another host. */
  url = "";
  otherUrl = "";

  async start(): Promise<this> {
    this.servers = [0, 1].map(() => createServer((request, response) => void this.serve(request, response)));
    const urls: string[] = [];
    for (const server of this.servers) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    }
    [this.url = "", this.otherUrl = ""] = urls;
    return this;
  }

  async stop(): Promise<void> {
    for (const server of this.servers) {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    }
  }

  /** The next requests to a route meet this, one each. */
  next(route: Route, ...troubles: Trouble[]): void {
    this.troubles[route] = [...(this.troubles[route] ?? []), ...troubles];
  }

  /** From here on nothing goes wrong that was to come. */
  calm(): void {
    for (const route of Object.keys(this.troubles)) delete this.troubles[route];
  }

  /** The next request is never answered. Resolves when it has come. */
  hang(): Promise<void> {
    return new Promise((resolve) => {
      this.hanging = resolve;
    });
  }

  /** How often a prompt was executed. */
  times(prompt: string): number {
    return this.books.filter((one) => one.prompt === prompt).length;
  }

  protected id(prefix = ""): string {
    this.count += 1;
    return `${prefix}${"0123456789abcdef".slice(0, 8)}${String(this.count).padStart(4, "0")}`;
  }

  protected enter(prompt: string, input: Record<string, unknown>, billed = true): Executed {
    const one = { id: this.id("job-"), prompt, billed, input };
    this.books.push(one);
    return one;
  }

  /** Which route a request takes. */
  protected abstract routeOf(asked: Asked): Route;
  /** The vendor's answer to a wrong key; null if the key is good. */
  protected abstract refuseKey(asked: Asked): Said | null;
  protected abstract answer(asked: Asked): Said | Promise<Said>;
  /** The vendor's form of an error that has only a status. */
  protected abstract errorBody(status: number): unknown;

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, [value].flat().join(", ")]),
    );
    const asked = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers,
      body,
      json: parsed(body),
      port: request.socket.remotePort ?? 0,
    };
    this.asked.push(asked);
    if (this.hanging !== null) {
      this.hanging();
      this.hanging = null;
      return;
    }
    if (asked.path.startsWith("/files/")) return send(response, this.file(asked));
    const refused = this.refuseKey(asked);
    if (refused !== null) return send(response, refused);
    const trouble = this.troubles[this.routeOf(asked)]?.shift();
    if (trouble !== undefined && "status" in trouble)
      return send(response, {
        status: trouble.status,
        headers: {
          ...(trouble.retryAfter === undefined ? {} : { "retry-after": trouble.retryAfter }),
          ...(trouble.date === undefined ? {} : { date: trouble.date }),
        },
        body: trouble.body ?? this.errorBody(trouble.status),
      });
    const said = await this.answer(asked);
    if (trouble === undefined) return send(response, said);
    if (trouble.after === "drop") return void request.socket.destroy();
    if (trouble.after === "empty") return send(response, { ...said, body: Buffer.alloc(0) });
    if (trouble.after === "wrong types") return send(response, { body: wrongTypes(said.body) });
    if (trouble.after === "html")
      return send(response, {
        headers: { "content-type": "text/html" },
        body: Buffer.from("<html>gateway</html>"),
      });
    const whole = bytesOf(said.body);
    const half = whole.subarray(0, whole.length / 2);
    if (!Buffer.isBuffer(said.body)) return send(response, { ...said, headers: typeOf(said), body: half });
    // Half of a sound is a sound; that it is half tells its length alone.
    response.writeHead(200, { ...said.headers, "content-length": String(whole.length) });
    response.write(half, () => request.socket.destroy());
  }

  /** Results. A signed address refuses a key, as S3 and Azure do. */
  private file(asked: Asked): Said {
    if (asked.headers["authorization"] !== undefined)
      return { status: 400, headers: { "content-type": "application/xml" }, body: Buffer.from("<Error/>") };
    if (this.expired)
      return { status: 403, headers: { "content-type": "application/xml" }, body: Buffer.from("<Error/>") };
    return { headers: { "content-type": "image/png" }, body: png };
  }
}

function parsed(body: Buffer): Record<string, unknown> {
  try {
    return JSON.parse(body.toString()) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** The same names, with numbers where text was and text where lists were. */
function wrongTypes(body: unknown): unknown {
  if (Buffer.isBuffer(body)) return { detail: 1 };
  return Object.fromEntries(Object.keys(body as object).map((name) => [name, { odd: 1 }]));
}

function bytesOf(body: unknown): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body ?? {}));
}

function typeOf({ headers, body }: Said): Record<string, string> {
  return { ...(Buffer.isBuffer(body) ? {} : { "content-type": "application/json" }), ...headers };
}

function send(response: ServerResponse, said: Said): void {
  response.writeHead(said.status ?? 200, typeOf(said));
  response.end(bytesOf(said.body));
}

/** A picture of one pixel. */
export const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
/** A fifth of a second of silence: eight frames of an MP3 with 128 kbit/s. */
export const mp3 = Buffer.concat(
  Array.from({ length: 8 }, () => Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0x64]), Buffer.alloc(413)])),
);
