import { Agent, EnvHttpProxyAgent } from "undici";
import { expect, test } from "vitest";
import { connectionsTo } from "../../src/proxy/tunnel.js";
import { type Proxies, proxiesIn } from "../../src/proxy/variables.js";
import { startProxy } from "../proxy/server.js";
import { afterwards, openAi, Place } from "./place.js";

/** A proxy in whose network api.example and files.example are the stand-in of a vendor. */
async function office(change: Partial<Proxies> = {}) {
  const upstream = await openAi();
  const state = { isDown: false };
  const to = Number(new URL(upstream.url).port);
  const proxy = await startProxy(() => (state.isDown ? { status: 502 } : { to }));
  afterwards(() => proxy.close());
  const place = new Place(
    `
inputs: { allow: [files.example] }
providers: { vendor: { kind: openai, base_url: "http://api.example/v1", key_env: KEY } }
models:
  - { key: hero, provider: vendor, category: image, credits: 4, request: { model: gpt-image-2 } }
  - { key: copy, provider: { kind: command }, category: image, input: image, command: [cp, "{{ image }}", "{{ out }}.png"] }
`,
    { proxies: { ...(proxiesIn({ HTTP_PROXY: proxy.host }) as Proxies), ...change } },
  );
  return { upstream, proxy, state, place: await place.open() };
}

test("jobs go to their vendor, and their files and inputs come, through the network's proxy", async () => {
  const { upstream, proxy, place } = await office();
  upstream.asUrls = true;
  upstream.url = "http://files.example";
  for (const prompt of ["a kite", "a boat"])
    expect(await place.finished(await place.generate({ model: "hero", prompt }))).toMatchObject({
      status: "completed",
    });
  expect(upstream.times("a kite") + upstream.times("a boat")).toBe(2);
  const ofVendor = proxy.tunnels.filter((host) => host === "api.example:80");
  expect(ofVendor, "a tunnel for each paid request").toHaveLength(2);
  expect(proxy.tunnels.filter((host) => host === "files.example:80")).toHaveLength(2);
  const image_url = "http://files.example/files/x.png";
  const copied = await place.finished(await place.generate({ model: "copy", image_url }));
  expect(copied).toMatchObject({ error: null, status: "completed" });
  expect(proxy.tunnels).toHaveLength(5);
});

test("a job for which the proxy opens no tunnel was not sent, and is sent later", async () => {
  const { upstream, proxy, state, place } = await office();
  state.isDown = true;
  const id = await place.generate({ model: "hero", prompt: "a kite" });
  await place.until(async () => (await place.task(id)).note?.includes("(HTTP_PROXY) answered 502"));
  expect(upstream.asked).toEqual([]);
  state.isDown = false;
  expect(await place.finished(id)).toMatchObject({ status: "completed" });
  expect(upstream.times("a kite")).toBe(1);
  expect(new Set(proxy.tunnels)).toEqual(new Set(["api.example:80"]));
});

test("an input whose name leads into the own network is refused before the proxy is asked for it", async () => {
  // The one such name that is the same on every machine; usually it needs no proxy.
  const { proxy, place } = await office({ except: "" });
  const id = await place.generate({ model: "copy", image_url: "https://localhost/x.png" });
  const task = await place.finished(id);
  expect(task).toMatchObject({ status: "failed", error: expect.stringContaining("on a private network") });
  expect(proxy.tunnels).toEqual([]);
});

test.each([
  ["http://api.example/v1", EnvHttpProxyAgent],
  ["http://93.184.216.34/v1", EnvHttpProxyAgent],
  ["http://10.0.0.8:8188", Agent],
  ["http://192.168.1.20:8188", Agent],
  ["http://[fd00::8]:8188", Agent],
])("a provider at %s is reached in its own way", (address, kind) => {
  const proxies = proxiesIn({ HTTP_PROXY: "proxy.example:3128" }) as Proxies;
  expect(connectionsTo(new URL(address), proxies, {}).constructor).toBe(kind);
});
