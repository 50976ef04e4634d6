import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bodyBytesMax } from "../../src/service/answers/request-body.js";
import { headerBytesMax } from "../../src/service/http/http.js";
import { servedModels } from "../serve/subject.js";
import type { Subject } from "./suite/subject.js";
import { onASocket } from "./suite/subjects.js";

/** Sends bytes as they are and reads until the other side hangs up. */
async function raw(
  port: number,
  bytes: string,
): Promise<{ status: number; body: { error: { code: string } } }> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(bytes);
  const answer = await text(socket);
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  return { status: Number(head.split(" ")[1]), body: JSON.parse(body) };
}

/** Sends a body in chunks, so that its length is not told, until an answer comes or it is sent. */
async function chunked(port: number, key: string, bytes: number): Promise<number> {
  const headers = { "x-api-key": key, "content-type": "application/json" };
  const sent = request({ port, host: "127.0.0.1", path: "/api/v1/generate", method: "POST", headers });
  // A client that is refused early may find the connection closed while it still writes.
  sent.on("error", () => {});
  const answered = once(sent, "response");
  for (let left = bytes; left > 0; left -= 65_536) sent.write(" ".repeat(Math.min(left, 65_536)));
  sent.end();
  const [response] = await answered;
  response.resume();
  return response.statusCode;
}

const head = "GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";

describe.each([
  { name: "a sandbox", open: onASocket, home: [302, "/docs"] },
  { name: "a served models file", open: servedModels, home: [404, null] },
])("a request on the wire to $name", ({ open, home }) => {
  let subject: Subject;
  let url: string;
  let port: number;
  beforeAll(async () => {
    subject = await open();
    url = subject.url ?? "";
    port = Number(new URL(url).port);
  });
  afterAll(() => subject.close());

  it("may be HEAD wherever GET is answered", async () => {
    const response = await fetch(`${url}/api/v1/me`, {
      method: "HEAD",
      headers: { "x-api-key": subject.key },
    });
    expect([response.status, await response.text()]).toEqual([200, ""]);
  });

  it("without a key is told how to send one", async () => {
    const response = await fetch(`${url}/api/v1/me`);
    expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  });

  it("to no endpoint leads a browser to the reference, if the service has one", async () => {
    const response = await fetch(url, { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual(home);
  });

  it("for a file cannot make a chain of redirects, unless faults ask for it", async () => {
    const response = await fetch(`${url}/files/x/1.png?hops=9`, { redirect: "manual" });
    expect(response.status).toBe(403);
  });

  it("with larger headers than are read is answered 431 in the shape of all errors", async () => {
    const answer = await raw(port, `${head}X-Large: ${"x".repeat(headerBytesMax)}\r\n\r\n`);
    expect([answer.status, answer.body.error.code]).toEqual([431, "HEADERS_TOO_LARGE"]);
  });

  it("with a longer address than is read is answered 431 as well", async () => {
    const answer = await raw(
      port,
      `GET /api/v1/task/${"x".repeat(headerBytesMax)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    );
    expect(answer.status).toBe(431);
  });

  it.each([
    "hello\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    "GET /api/v1/me HTTP/1.0\r\n\r\n",
    "GET /api/v1/me HTTP/1.1\r\nConnection: close\r\n\r\n",
    "GET /api\\v1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost@evil\r\nConnection: close\r\n\r\n",
    `${head}Content-Length: x\r\n\r\n`,
    `${head}Bad Header\r\n\r\n`,
  ])("that cannot be read (%j) is answered 400 in the shape of all errors", async (bytes) => {
    const answer = await raw(port, bytes);
    expect([answer.status, answer.body.error.code]).toEqual([400, "INVALID_REQUEST"]);
  });

  it("with a body larger than is read is answered 413, although its length was not told", async () => {
    expect(await chunked(port, subject.key, bodyBytesMax + 65_536)).toBe(413);
    expect(await chunked(port, subject.key, bodyBytesMax)).toBe(400);
  });

  it.each(["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1", "[::2]"])(
    "to %s is not answered, because that name need not mean this machine",
    async (host) => {
      for (const path of ["/api/v1/me", "/files/x/1.png", "/docs", "/openapi.json"]) {
        const answer = await raw(port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
        expect([answer.status, answer.body.error.code]).toEqual([421, "HOST_REFUSED"]);
      }
    },
  );

  it.each(["localhost", "LOCALHOST:1", "127.0.0.1", "127.8.9.1:80", "[::1]:3000"])(
    "to %s is",
    async (host) => {
      const answer = await raw(port, `GET /api/v1/me HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect([answer.status, answer.body.error.code]).toEqual([401, "MISSING_API_KEY"]);
    },
  );
});
