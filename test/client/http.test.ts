import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createSocketServer, type Socket } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseJson } from "../../src/api/values.js";
import { openHttp } from "../../src/client/http.js";
import type { Send } from "../../src/core/ports/send.js";
import { ManualClock } from "../manual-clock.js";

const key = "svc_canaryCANARYcanaryCANARYcanary00";
const post = {
  endpoint: "generate",
  method: "POST",
  path: "/api/v1/generate",
  body: "{}",
  timeoutMs: 120_000,
} as const;
const get = { endpoint: "me", method: "GET", path: "/api/v1/me", timeoutMs: 30_000 } as const;

let clock: ManualClock;
let closing: (() => Promise<void> | void)[];

beforeEach(() => {
  clock = new ManualClock();
  closing = [];
});
afterEach(async () => {
  for (const close of closing.reverse()) await close();
  expect(clock.asleep, "every timeout is put away").toBe(0);
});

async function serving(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server that speaks bytes: it is handed the socket when the request's bytes arrive. */
async function raw(answer: (socket: Socket) => void): Promise<string> {
  const server = createSocketServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function sender(baseUrl: string): Send {
  const http = openHttp({ baseUrl, key, clock });
  closing.push(() => http.close());
  return http.send;
}

describe("what a failure proves", () => {
  test("P2: a connection that is refused is not sent", async () => {
    const server = createSocketServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise<void>((resolve) => server.close(() => resolve()));
    for (const host of ["127.0.0.1", "localhost"])
      expect(await sender(`http://${host}:${port}`)(post)).toEqual({
        kind: "not_sent",
        reason: expect.stringMatching(new RegExp(`^connect ECONNREFUSED .*:${port}$`)),
      });
  });

  test("a server that speaks plain HTTP where HTTPS is asked for is told as that, and nothing was sent", async () => {
    const url = await raw((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    expect(await sender(url.replace("http:", "https:"))(post)).toEqual({
      kind: "not_sent",
      reason: "the server does not speak HTTPS; try http:// in its address",
    });
  });

  test("P22: an answer that does not end is given up after 32 MiB", async () => {
    const most = 32 * 1024 * 1024;
    const of = async (bytes: number) => {
      const url = await serving((_, response) => response.end(Buffer.alloc(bytes, "x")));
      return sender(url)(get);
    };
    expect(await of(most)).toMatchObject({ kind: "answer", status: 200 });
    expect(await of(most + 1)).toEqual({
      kind: "no_answer",
      status: 200,
      reason: `answer larger than ${most} bytes`,
    });
  });

  test("P2: a paid request in flight when the connections are closed has no answer", async () => {
    let arrived = () => {};
    const arrival = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const url = await serving(() => arrived());
    const http = openHttp({ baseUrl: url, key, clock });
    const reply = http.send(post);
    await arrival;
    await http.close();
    expect(await reply).toMatchObject({ kind: "no_answer" });
    expect(await http.send(post)).toMatchObject({ kind: "not_sent" });
  });

  test("P2: a connection that breaks after the request's headers left is no answer, whatever the error code", async () => {
    const url = await raw((socket) => socket.resetAndDestroy());
    expect(await sender(url)(post)).toEqual({ kind: "no_answer", reason: "the connection was reset" });
  });

  test("an answer that is cut off is no answer, and its status is kept", async () => {
    const url = await raw((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"task_id"'));
    expect(await sender(url)(post)).toMatchObject({ kind: "no_answer", status: 200 });
  });

  test("a request that is not answered in time has no answer", async () => {
    let arrived = () => {};
    const arrival = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const url = await serving(() => arrived());
    const reply = sender(url)(post);
    await arrival;
    clock.advance(120_000);
    expect(await reply).toEqual({ kind: "no_answer", reason: "timeout" });
  });

  test("a request that is interrupted before it could leave is not sent", async () => {
    const url = await serving((_, response) => response.end());
    expect(await sender(url)(get, AbortSignal.abort())).toEqual({ kind: "not_sent", reason: "interrupted" });
  });
});

describe("what is sent", () => {
  test("a paid request has its body as it was made, and a free one has none", async () => {
    const seen: string[] = [];
    const url = await serving(async (request, response) => {
      let body = "";
      for await (const piece of request) body += piece;
      seen.push(`${request.headers["content-type"] ?? "none"} ${body}`);
      response.end("{}");
    });
    await sender(url)({ ...post, body: '{"prompt":"é"}' });
    await sender(url)(get);
    expect(seen).toEqual(['application/json {"prompt":"é"}', "none "]);
  });

  test("P21: the key goes as Bearer and in no other header", async () => {
    let seen: IncomingMessage["headers"] = {};
    const url = await serving((request, response) => {
      seen = request.headers;
      response.end("{}");
    });
    await sender(url)(post);
    expect(seen.authorization).toBe(`Bearer ${key}`);
    expect(seen.accept).toBe("application/json");
    expect(seen["content-type"]).toBe("application/json");
    expect(Object.entries(seen).filter(([, value]) => String(value).includes(key))).toHaveLength(1);
  });

  test("P21: a redirect is an answer and is never followed", async () => {
    const paths: string[] = [];
    const url = await serving((request, response) => {
      paths.push(request.url ?? "");
      response.writeHead(302, { location: "/elsewhere" }).end();
    });
    expect(await sender(url)(get)).toMatchObject({ kind: "answer", status: 302 });
    expect(paths).toEqual(["/api/v1/me"]);
  });

  test("P21: each paid request has its own connection", async () => {
    const sockets = new Set<Socket>();
    const url = await serving((request, response) => {
      sockets.add(request.socket);
      response.end("{}");
    });
    const send = sender(url);
    for (let n = 0; n < 3; n++) await send(post);
    expect(sockets.size).toBe(3);
  });

  test("P21: no paid request meets a connection that the server closes, whatever it promised", async () => {
    const used = new Set<Socket>();
    const answered = "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=60\r\nContent-Length: 2\r\n\r\n{}";
    let reused = 0;
    const server = createSocketServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", () => {
        if (!used.has(socket)) {
          used.add(socket);
          socket.write(answered);
          return;
        }
        // It closes the idle connection just as the next request is written.
        reused++;
        socket.resetAndDestroy();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closing.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
    const send = sender(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    for (let n = 0; n < 10; n++) {
      const replies = await Promise.all([send(post), send(post), send(post)]);
      expect(replies.map(({ kind }) => kind)).toEqual(["answer", "answer", "answer"]);
    }
    expect(reused).toBe(0);
    // A free request, which may reuse a connection, shows that the server does what it is here for.
    let reply = await send(get);
    while (reused === 0) reply = await send(get);
    expect(reply.kind).toBe("no_answer");
  });

  test("a path prefix of the base URL stays before the endpoint's path", async () => {
    const paths: string[] = [];
    const url = await serving((request, response) => {
      paths.push(request.url ?? "");
      response.end("{}");
    });
    await sender(`${url}/gateway`)(get);
    expect(paths).toEqual(["/gateway/api/v1/me"]);
  });

  test("an error answer is handed on whole, with its headers in lower case", async () => {
    const url = await serving((_, response) =>
      response.writeHead(429, { "Retry-After": "7", "Set-Cookie": ["a=1", "b=2"] }).end('{"code":"X"}'),
    );
    expect(await sender(url)(post)).toMatchObject({
      kind: "answer",
      status: 429,
      headers: { "retry-after": "7", "set-cookie": "a=1, b=2" },
      body: '{"code":"X"}',
    });
  });
});

describe("an answer that is compressed, although nobody asked for it", () => {
  const json = JSON.stringify({ task_id: "t" });

  test.each([
    ["gzip", gzipSync(json)],
    ["br", brotliCompressSync(json)],
    ["deflate", deflateSync(json)],
    ["gzip", Buffer.from(json)],
    ["unheard-of", Buffer.from(json)],
  ])("with %s is read", async (coding, bytes) => {
    const url = await serving((_, response) =>
      response.writeHead(200, { "content-encoding": coding }).end(bytes),
    );
    for (const request of [post, get])
      expect(await sender(url)(request)).toMatchObject({ kind: "answer", status: 200, body: json });
  });

  test("is an answer all the same if it is damaged, or a bomb", async () => {
    const damaged = gzipSync(json).subarray(0, 20);
    const bomb = gzipSync(Buffer.alloc(40 * 2 ** 20));
    for (const bytes of [damaged, bomb]) {
      const url = await serving((_, response) =>
        response.writeHead(422, { "content-encoding": "gzip" }).end(bytes),
      );
      expect(await sender(url)(post)).toMatchObject({ kind: "answer", status: 422 });
    }
  });
});

test.each<[string, (text: string) => Buffer]>([
  ["UTF-8 with a byte order mark", (text) => Buffer.from(`\ufeff${text}`)],
  ["UTF-16 with a byte order mark", (text) => Buffer.from(`\ufeff${text}`, "utf16le")],
  ["UTF-16 without one", (text) => Buffer.from(text, "utf16le")],
  ["UTF-16 in the other order", (text) => Buffer.from(`\ufeff${text}`, "utf16le").swap16()],
  ["UTF-16 in the other order without one", (text) => Buffer.from(text, "utf16le").swap16()],
])("an answer in %s is read", async (_, encoded) => {
  const json = JSON.stringify({ task_id: "Zürich" });
  const url = await serving((_, response) => response.writeHead(200).end(encoded(json)));
  for (const request of [post, get]) {
    const reply = await sender(url)(request);
    expect(reply).toMatchObject({ kind: "answer", status: 200 });
    expect(parseJson(reply.kind === "answer" ? reply.body : "")).toEqual({ task_id: "Zürich" });
  }
});
