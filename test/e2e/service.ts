import { createServer, type IncomingMessage, type ServerResponse, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import sharp from "sharp";
import { afterThisFile } from "../after-file.js";
import { testKey } from "./leaked-key.js";
import { skippingClock } from "./skipping-clock.js";

/** A request as the scripted service sees it. */
export interface Asked {
  /** Such as `POST generate`, `GET task`, `GET me`, `GET models`, `GET file`. */
  what: string;
  path: string;
  headers: IncomingMessage["headers"];
  body: string;
  /** How many of this kind came before it. */
  before: number;
}

/** What it answers: JSON or text with a status, or a connection that is cut without an answer. */
export type Scripted =
  | {
      status?: number;
      statusText?: string;
      json?: unknown;
      text?: string;
      headers?: Record<string, string>;
    }
  | "cut"
  /** The request is served as usual, and the connection cut in place of the answer. */
  | "serve and cut"
  /** The usual answer. */
  | "serve";

export type Script = (asked: Asked) => Scripted | Promise<Scripted>;

/** Says that the request waits for this, and for nothing real. */
type Hold = (scripted: Scripted | Promise<Scripted>) => Promise<Scripted>;
type Proxy = (asked: Asked, hold: Hold) => Promise<Scripted>;

export interface ScriptedService {
  url: string;
  key: string;
  env: Record<string, string>;
  asked: Asked[];
  /** Ids of the tasks that were made, by prompt, in order. */
  made: { prompt: string; task: string; body: Record<string, unknown> }[];
  /** How often this was asked. */
  count(what: string): number;
  script(script: Script): void;
  /** Resolves when this was asked so many times. */
  wasAsked(what: string, times: number): Promise<void>;
  /** Ends the service and every connection to it. */
  down(): Promise<void>;
  /** Has it listen again, at the same address. */
  up(): Promise<void>;
  close(): Promise<void>;
}

/**
 * A service on loopback that does what a script says, request by request, and else behaves: one model, tasks that are
 * done at the first look, one small picture each. `balance` is counted down by each task, by what it lists or `charge`.
 */
export async function startService(
  options: { balance?: number; charge?: number; plan?: string; script?: Script; passOn?: Proxy } = {},
): Promise<ScriptedService> {
  const picture = await sharp({ create: { width: 8, height: 8, channels: 3, background: "#356" } })
    .png()
    .toBuffer();
  let script: Script = options.script ?? (() => "serve");
  const watchers = new Set<() => void>();
  const asked: Asked[] = [];
  const made: ScriptedService["made"] = [];
  const { charge = price } = options;
  const account = {
    balance: options.balance ?? 100,
    used: 0,
    requests: 0,
    plan: options.plan ?? "Enterprise",
  };
  let url = "";

  const usual = (request: Asked): Scripted => {
    switch (request.what) {
      case "GET me":
        return { json: me(account) };
      case "GET models":
        return { json: models };
      case "POST generate": {
        const body = JSON.parse(request.body) as Record<string, unknown>;
        const task = taskId(made.length + 1);
        made.push({ prompt: String(body["prompt"]), task, body });
        account.balance -= charge;
        account.used += charge;
        return { json: { ...created(task, account.balance), credits_consumed: charge } };
      }
      case "GET task": {
        const found = made.find(({ task }) => request.path.endsWith(task));
        return found
          ? { json: { ...finished(found, `${url}/files/${found.task}.png`), credits_consumed: charge } }
          : { status: 404, json: { error: { code: "TASK_NOT_FOUND", message: "no such task" } } };
      }
      default:
        return { status: 404, json: { error: { code: "NOT_FOUND", message: "no such path" } } };
    }
  };

  const answer = async (request: IncomingMessage, reply: ServerResponse) => {
    const body = await readBody(request);
    const what = kindOf(request);
    const path = request.url ?? "";
    const now: Asked = { what, path, headers: request.headers, body, before: count(what) };
    asked.push(now);
    if (what !== "GET file") account.requests++;
    for (const look of watchers) look();
    const hold: Hold = (scripted) => skippingClock.holding(scripted, reply);
    const scripted = await (options.passOn?.(now, hold) ?? hold(script(now)));
    if (scripted === "cut") return void request.socket.destroy();
    reply.setHeader("date", new Date(skippingClock.now()).toUTCString());
    if (what === "GET file" && typeof scripted === "string") {
      reply.writeHead(200, { "content-type": "image/png", "content-length": picture.length, etag: '"1"' });
      return void reply.end(picture);
    }
    const said = typeof scripted === "string" ? usual(now) : scripted;
    if (scripted === "serve and cut" || typeof said === "string") return void request.socket.destroy();
    const text = said.json === undefined ? (said.text ?? "") : JSON.stringify(said.json);
    if (said.statusText !== undefined) reply.statusMessage = said.statusText;
    reply.writeHead(said.status ?? 200, { "content-type": "application/json", ...said.headers });
    reply.end(text);
  };

  const count = (what: string) => asked.filter((request) => request.what === what).length;
  const server = createServer((request, reply) => void answer(request, reply));
  const listen = (port: number) => new Promise<void>((ready) => server.listen(port, "127.0.0.1", ready));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  url = `http://127.0.0.1:${port}`;
  const down = () => {
    server.closeAllConnections();
    return new Promise<void>((done) => server.close(() => done()));
  };
  const service: ScriptedService = {
    url,
    key: testKey,
    env: { BULKGEN_BASE_URL: url, BULKGEN_API_KEY: testKey },
    asked,
    made,
    count,
    script(next) {
      script = next;
    },
    wasAsked: (what, times) =>
      new Promise((resolve) => {
        const look = () => {
          if (count(what) < times) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        look();
      }),
    down,
    up: () => listen(port),
    close() {
      return down();
    },
  };
  afterThisFile(() => service.close());
  return service;
}

/** What a service behind a proxy has answered. */
export interface Passed {
  status: number;
  text: string;
}

/**
 * A proxy before a service: the script sees every request first. `serve` passes it on; `serve and cut` passes it on,
 * waits until the service has answered, and cuts the connection in place of the answer. The script may change the body, and `changed` may replace an answer.
 */
export async function startProxy(
  target: { url: string; key: string },
  script: Script,
  changed: (asked: Asked, passed: Passed) => Passed = (_, passed) => passed,
): Promise<ScriptedService> {
  const service = await startService({
    passOn: async (asked, hold) => {
      const scripted = await hold(script(asked));
      if (scripted !== "serve" && scripted !== "serve and cut") return scripted;
      const passed = await pass(target.url, asked);
      return scripted === "serve and cut" ? "cut" : changed(asked, passed);
    },
  });
  return { ...service, key: target.key, env: { BULKGEN_BASE_URL: service.url, BULKGEN_API_KEY: target.key } };
}

/** The body may be another one than what came. */
function lengthOf(headers: Asked["headers"], body: string) {
  return headers["content-length"] === undefined ? {} : { "content-length": Buffer.byteLength(body) };
}

function pass(to: string, { what, path, headers, body }: Asked): Promise<Passed> {
  return new Promise((resolve, reject) => {
    const outgoing = send(
      `${to}${path}`,
      {
        method: what.split(" ")[0] ?? "GET",
        headers: { ...headers, host: new URL(to).host, ...lengthOf(headers, body) },
      },
      (reply) => {
        void readBody(reply).then((text) => resolve({ status: reply.statusCode ?? 502, text }), reject);
      },
    );
    outgoing.once("error", reject);
    outgoing.end(body);
  });
}

async function readBody(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

function kindOf(request: IncomingMessage): string {
  const path = (request.url ?? "").replace(/\?.*$/, "");
  const name = path.startsWith("/files/")
    ? "file"
    : path.startsWith("/api/v1/task/")
      ? "task"
      : path.replace("/api/v1/", "");
  return `${request.method} ${name}`;
}

const price = 2;
const at = "2026-01-02T03:04:05.000Z";

export function taskId(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
}

function created(task: string, remaining: number) {
  return {
    task_id: task,
    external_task_id: `x-${task.slice(-4)}`,
    status: "processing",
    model: "plain-image",
    category: "image",
    credits_consumed: price,
    credits_remaining: remaining,
  };
}

function finished({ task, body }: { task: string; body: Record<string, unknown> }, url: string) {
  return {
    task_id: task,
    model: "plain-image",
    category: "image",
    status: "completed",
    input: body,
    output_urls: [url],
    error: null,
    credits_consumed: price,
    created_at: at,
    completed_at: at,
  };
}

/** The record of a task that failed at the provider. */
export function failedTask(made: { task: string; body: Record<string, unknown> }) {
  const failure = {
    status: "failed",
    output_urls: null,
    error: "The provider is overloaded.",
    credits_consumed: 0,
  };
  return { ...finished(made, ""), ...failure };
}

/** What GET models lists. */
export const models = {
  models: [
    {
      model_key: "plain-image",
      model_name: "Plain Image",
      category: "image",
      credits_cost: price,
      input_type: "text",
      parameters: [
        {
          key: "aspect_ratio",
          label: "Aspect ratio",
          type: "select",
          options: [
            { value: "1:1", label: "Square" },
            { value: "16:9", label: "Landscape" },
          ],
          default: "1:1",
        },
      ],
    },
  ],
  categories: { image: ["plain-image"], video: [], audio: [] },
  total: 1,
};

/** The record of GET me, to be changed by a script. */
export function me(account: { balance: number; used?: number; requests?: number; plan?: string }) {
  return {
    user: { id: "11111111-1111-4111-8111-111111111111", email: "ada@example.com", name: "Ada" },
    credits: { balance: account.balance, used_this_key: account.used ?? 0 },
    subscription: {
      status: "active",
      plan: account.plan ?? "Enterprise",
      credits_per_month: 20_000,
      billing_interval: "month",
      current_period_end: "2099-01-01T00:00:00.000Z",
      cancel_at_period_end: false,
    },
    api_key: { id: "key-1", name: "tests", requests_count: account.requests ?? 0 },
  };
}
