import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { undiciDownloads } from "../../src/archive/download/download.js";
import { BucketError, openBucket } from "../../src/bucket/bucket.js";
import { openHttp } from "../../src/client/http.js";
import { deliver } from "../../src/notify/deliver.js";
import { endNotification } from "../../src/notify/facts.js";
import { targetsOf } from "../../src/notify/target.js";
import { proxied } from "../../src/proxy/tunnel.js";
import { type Proxies, proxiesIn } from "../../src/proxy/variables.js";
import { s3Server } from "../bucket/s3-server.js";
import { ManualClock } from "../manual-clock.js";
import { startHook } from "../notify/receivers.js";
import { origin, runFacts } from "../report/facts.js";
import { startProxy, type TestProxy } from "./server.js";

const key = "svc_canaryCANARYcanaryCANARYcanary00";
const limits = { timeoutMs: 30_000 } as const;
const post = {
  endpoint: "generate",
  method: "POST",
  path: "/api/v1/generate",
  body: "{}",
  ...limits,
} as const;
const get = { endpoint: "me", method: "GET", path: "/api/v1/me", ...limits } as const;

describe("the variables that name proxies", () => {
  test.each([
    ["none", {}, null],
    ["an empty one", { HTTPS_PROXY: " " }, null],
    ["exceptions alone", { NO_PROXY: "a.example" }, null],
    [
      "an address",
      { HTTPS_PROXY: "http://proxy.example:3128" },
      { https: "http://proxy.example:3128", http: "" },
    ],
    ["a host and a port", { HTTPS_PROXY: "proxy.example:3128" }, { https: "http://proxy.example:3128" }],
    [
      "small letters, which come first",
      { https_proxy: "http://a:1", HTTPS_PROXY: "http://b:1" },
      { https: "http://a:1", from: "https_proxy" },
    ],
    [
      "both",
      { HTTP_PROXY: "http://a:1", HTTPS_PROXY: "http://b:1" },
      { http: "http://a:1", https: "http://b:1", from: "HTTPS_PROXY and HTTP_PROXY" },
    ],
    [
      "exceptions",
      { HTTPS_PROXY: "a:1", NO_PROXY: "x.example, y.example" },
      { except: "x.example, y.example,localhost,127.0.0.1,[::1]" },
    ],
    ["an exception for everything", { HTTPS_PROXY: "a:1", no_proxy: "*" }, { except: "*" }],
  ])("%s", (_, environment, expected) => {
    if (expected === null) expect(proxiesIn(environment)).toBeNull();
    else expect(proxiesIn(environment)).toMatchObject(expected);
  });

  test.each(["socks5://user:SECRET@a:1", "http://", "ftp://SECRET/"])(
    "%s is refused, and not repeated",
    (address) => {
      expect(() => proxiesIn({ HTTPS_PROXY: address })).toThrow(
        /^HTTPS_PROXY: expected the address of a proxy(?!.*SECRET)/,
      );
    },
  );
});

test("a bucket says which variable names no proxy", () => {
  const environment = {
    AWS_ENDPOINT_URL: "http://127.0.0.1:1",
    AWS_ACCESS_KEY_ID: "a",
    AWS_SECRET_ACCESS_KEY: "b",
    HTTPS_PROXY: "socks5://a:1",
  };
  const open = () => openBucket({ bucket: "inputs", prefix: "" }, environment);
  expect(open).toThrow(BucketError);
  expect(open).toThrow(/^HTTPS_PROXY: expected the address of a proxy/);
});

describe("requests through a proxy", () => {
  let closing: (() => Promise<unknown> | unknown)[];
  let asked: string[];
  let service: Server;

  beforeEach(async () => {
    closing = [];
    asked = [];
    service = createServer((request, reply) => {
      asked.push(`${request.method} ${request.headers.host}${request.url}`);
      request.resume().on("end", () => reply.end("{}"));
    });
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
    closing.push(() => {
      service.closeAllConnections();
      return new Promise((resolve) => service.close(resolve));
    });
  });
  afterEach(async () => {
    for (const close of closing.reverse()) await close();
  });

  const servicePort = () => (service.address() as AddressInfo).port;

  async function proxyTo(answer: Parameters<typeof startProxy>[0]): Promise<TestProxy> {
    const proxy = await startProxy(answer);
    closing.push(proxy.close);
    return proxy;
  }

  function sender(proxy: string, baseUrl = "http://service.example") {
    const http = openHttp({
      baseUrl,
      key,
      clock: new ManualClock(),
      proxies: proxiesIn({ HTTP_PROXY: proxy }),
    });
    closing.push(http.close);
    return http.send;
  }

  test("P2: are tunnelled, and each paid one has a tunnel of its own", async () => {
    const proxy = await proxyTo(() => ({ to: servicePort() }));
    const send = sender(`http://user:p%40ss@${proxy.host}`);
    for (const request of [get, post, post])
      expect(await send(request)).toMatchObject({ kind: "answer", status: 200 });
    expect(asked).toEqual([
      "GET service.example/api/v1/me",
      "POST service.example/api/v1/generate",
      "POST service.example/api/v1/generate",
    ]);
    expect(proxy.tunnels).toEqual(Array.from({ length: 3 }, () => "service.example:80"));
    expect(new Set(proxy.logins)).toEqual(new Set([`Basic ${Buffer.from("user:p@ss").toString("base64")}`]));
  });

  test.each([
    [
      "that wants a password",
      { status: 407 },
      "the proxy (HTTP_PROXY) answered 407; it wants a login, as in http://USER:PASSWORD@HOST:PORT",
    ],
    ["that cannot reach the service", { status: 502 }, "the proxy (HTTP_PROXY) answered 502"],
    ["that hangs up", "hang up", "the proxy (HTTP_PROXY) opens no tunnel: other side closed"],
  ] as const)("P2: by a proxy %s are not sent", async (_, answer, reason) => {
    const proxy = await proxyTo(() => answer);
    expect(await sender(proxy.host)(post)).toEqual({
      kind: "not_sent",
      reason: reason,
    });
    expect(asked).toEqual([]);
  });

  test("P2: by a proxy that is not there are not sent", async () => {
    const proxy = await proxyTo(() => "hang up");
    await proxy.close();
    closing.pop();
    expect(await sender(proxy.host)(post)).toEqual({
      kind: "not_sent",
      reason: `the proxy (HTTP_PROXY) opens no tunnel: connect ECONNREFUSED ${proxy.host}`,
    });
  });

  test("do not wait for ever for a proxy that keeps silent", async () => {
    const proxy = await proxyTo(() => "keep silent");
    const agent = proxied(proxiesIn({ HTTP_PROXY: proxy.host }) as Proxies, {}, 50);
    closing.push(() => agent.destroy());
    const asking = agent.request({ origin: "http://service.example", path: "/", method: "GET" });
    await expect(asking).rejects.toThrow("the proxy (HTTP_PROXY) opens no tunnel: no answer in time");
  });

  test("P2: whose tunnel leads to a login page are not sent, and the proxy is named", async () => {
    const proxy = await proxyTo(() => ({ to: servicePort() }));
    const http = openHttp({
      baseUrl: "https://service.example",
      key,
      clock: new ManualClock(),
      proxies: proxiesIn({ HTTPS_PROXY: proxy.host }),
    });
    closing.push(http.close);
    expect(await http.send(post)).toEqual({
      kind: "not_sent",
      reason: "the server, or the proxy (HTTPS_PROXY), does not speak HTTPS",
    });
  });

  test("P2: whose tunnel breaks once they have left are in doubt", async () => {
    const deaf = createSocketServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
    await new Promise<void>((resolve) => deaf.listen(0, "127.0.0.1", resolve));
    closing.push(() => new Promise((resolve) => deaf.close(resolve)));
    const proxy = await proxyTo(() => ({ to: (deaf.address() as AddressInfo).port }));
    expect(await sender(proxy.host)(post)).toMatchObject({ kind: "no_answer" });
  });

  test("to this machine use none", async () => {
    const proxy = await proxyTo(() => ({ to: servicePort() }));
    expect(await sender(proxy.host, `http://127.0.0.1:${servicePort()}`)(get)).toMatchObject({ status: 200 });
    expect(proxy.tunnels).toEqual([]);
  });

  test("for a webhook and a bucket are tunnelled too", async () => {
    const hook = await startHook(200);
    const s3 = await s3Server();
    const ports = {
      "hooks.example:80": new URL(hook.url).port,
      "s3.amazonaws.com:80": new URL(s3["AWS_ENDPOINT_URL"] ?? "").port,
    };
    const proxy = await proxyTo((host) => ({ to: Number(ports[host as keyof typeof ports]) }));
    const environment = { ...s3, AWS_ENDPOINT_URL: "http://s3.amazonaws.com", HTTP_PROXY: proxy.host };
    const warnings: string[] = [];
    const facts = endNotification("done", runFacts, { message: "", origin });
    const warn = (line: string) => warnings.push(line);
    await deliver(targetsOf({ notify: ["http://hooks.example/x"] }, {}), facts, {
      environment,
      clock: new ManualClock(),
      warn,
    });
    expect(await openBucket({ bucket: "inputs", prefix: "" }, environment).find("a.png")).toBeNull();
    expect({ warnings, received: hook.received.length }).toEqual({ warnings: [], received: 1 });
    expect(proxy.tunnels).toEqual(["hooks.example:80", "s3.amazonaws.com:80"]);
  });

  describe("for outputs", () => {
    function download(proxies: Proxies | null, address: string | null) {
      const error = Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" });
      const downloads = undiciDownloads({
        // Plain http is for a service on this machine alone.
        baseUrl: "http://127.0.0.1:1",
        proxies,
        lookup: (_host, _options, callback) =>
          address === null ? callback(error, "", 0) : callback(null, [{ address, family: 4 }]),
      });
      closing.push(downloads.close);
      return downloads.download("http://files.example/1.png", {
        headers: {},
        signal: new AbortController().signal,
      });
    }

    test.each([
      ["a name that this machine cannot resolve", null],
      ["a public address", "93.184.216.34"],
    ])("%s is fetched", async (_, address) => {
      const proxy = await proxyTo(() => ({ to: servicePort() }));
      const reply = await download(proxiesIn({ HTTP_PROXY: proxy.host }), address);
      for await (const _piece of reply.body);
      expect(reply.status).toBe(200);
      expect(proxy.tunnels).toEqual(["files.example:80"]);
    });

    test("a name that leads into the own network is refused", async () => {
      const proxy = await proxyTo(() => ({ to: servicePort() }));
      await expect(download(proxiesIn({ HTTP_PROXY: proxy.host }), "10.0.0.8")).rejects.toThrow(
        "output address files.example refused: it leads to a private address",
      );
      expect(proxy.tunnels).toEqual([]);
    });
  });
});
