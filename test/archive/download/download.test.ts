import { createServer } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AddressRefused } from "../../../src/archive/download/address.js";
import { type Downloads, redirectsMax, undiciDownloads } from "../../../src/archive/download/download.js";
import { serve, type TestServer } from "../server.js";

let server: TestServer;
let downloads: Downloads;
beforeAll(async () => {
  server = await serve();
  downloads = undiciDownloads({ baseUrl: server.url });
});
afterAll(async () => {
  await server.close();
  await downloads.close();
});
beforeEach(() => {
  server.requests.length = 0;
});

function get(path: string) {
  return downloads.download(`${server.url}${path}`, { headers: {}, signal: new AbortController().signal });
}

/** `/5` leads to `/4` and so on; `/0` answers. */
function countDown() {
  server.answer((request, reply) => {
    const left = Number(request.url?.slice(1));
    if (left > 0) reply.writeHead(302, { location: `/${left - 1}` }).end("elsewhere");
    else reply.end("here");
  });
}

test("P21: a download sends no key and no cookie, and accepts no compression", async () => {
  server.answer((_, reply) => reply.setHeader("set-cookie", "a=b").end("x"));
  for (const _ of [1, 2]) await text(Readable.from((await get("/a?x=1")).body));
  for (const { headers } of server.requests) {
    expect(headers).toMatchObject({ "accept-encoding": "identity", "user-agent": "bulkgen" });
    expect(Object.keys(headers).toSorted()).toEqual([
      "accept",
      "accept-encoding",
      "connection",
      "host",
      "user-agent",
    ]);
  }
});

test("P21: as many redirects as promised are followed", async () => {
  countDown();
  const reply = await get(`/${redirectsMax}`);
  expect(await text(Readable.from(reply.body))).toBe("here");
  expect(server.requests).toHaveLength(redirectsMax + 1);
});

test("P21: one redirect more is refused", async () => {
  countDown();
  const refused = get(`/${redirectsMax + 1}`);
  await expect(refused).rejects.toThrow(AddressRefused);
  await expect(refused).rejects.toThrow("more than 5 redirects");
});

test.each([
  "http://169.254.169.254/latest",
  "http://10.0.0.1/",
  "file:///etc/passwd",
  "http://[::ffff:a00:1]/",
  "http://",
])("P21, P22: a redirect to %s is refused", async (location) => {
  server.answer((_, reply) => reply.writeHead(302, { location }).end());
  await expect(get("/")).rejects.toThrow(AddressRefused);
});

test("what is no URL is refused, as an address and as what it redirects to", async () => {
  const signal = new AbortController().signal;
  await expect(downloads.download("no address", { headers: {}, signal })).rejects.toMatchObject({
    name: "AddressRefused",
    message: "the output address is not a URL",
  });
  server.answer((_, reply) => reply.writeHead(302, { location: "http://" }).end());
  await expect(get("/")).rejects.toThrow("the output address redirects to something that is not a URL");
});

test("an answer without the place that it redirects to is the answer, and headers that come twice are one", async () => {
  server.answer((_, reply) =>
    reply.writeHead(302, { "x-goog-hash": ["crc32c=AA==", "md5=BB=="] }).end("no place"),
  );
  const { status, headers, body } = await get("/");
  expect([status, headers["x-goog-hash"]]).toEqual([302, "crc32c=AA==, md5=BB=="]);
  expect(await text(Readable.from(body))).toBe("no place");
});

test("P22: a public name that leads to this machine is refused before anything connects", async () => {
  let connections = 0;
  const trap = createServer(() => connections++);
  await new Promise<void>((ready) => trap.listen(0, "127.0.0.1", ready));
  const { port } = trap.address() as { port: number };
  const outside = undiciDownloads({
    baseUrl: "https://api.example.com",
    lookup(host, _, callback) {
      const address = host === "cdn.example.com" ? "127.0.0.1" : "93.184.216.34";
      callback(null, [{ address, family: 4 }]);
    },
  });
  const signal = new AbortController().signal;
  await expect(outside.download(`https://cdn.example.com:${port}/`, { headers: {}, signal })).rejects.toThrow(
    AddressRefused,
  );
  expect(connections).toBe(0);
  await outside.close();
  await new Promise((done) => trap.close(done));
});

test("an aborted download rejects, also in the middle of its body", async () => {
  server.answer((_, reply) => void reply.writeHead(200).write("begun"));
  const abort = new AbortController();
  const reply = await downloads.download(server.url, { headers: {}, signal: abort.signal });
  await expect(
    (async () => {
      for await (const _ of reply.body) abort.abort();
    })(),
  ).rejects.toThrow();
});
