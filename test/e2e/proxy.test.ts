import { type AddressInfo, connect } from "node:net";
import { createServer } from "node:tls";
import { afterAll, expect, test } from "vitest";
import { certificate, privateKey } from "../certificate.js";
import { startProxy } from "../proxy/server.js";
import { newPlace, run, start } from "./command.js";
import { testKey } from "./leaked-key.js";
import { startService } from "./service.js";

/** The usual case of an office: https to the service, through a proxy that sees nothing but its name. */
const name = "service.example";

const closing: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

/** An encrypted way to a port of this machine, as `service.example`. */
async function encrypted(port: number): Promise<number> {
  const server = createServer({ key: privateKey, cert: certificate }, (socket) => {
    const far = connect(port, "127.0.0.1");
    far.pipe(socket).pipe(far);
    for (const each of [far, socket]) each.on("error", () => each.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
}

test("P21: the service is reached through a proxy, which never sees the key", async () => {
  const service = await startService();
  const port = await encrypted(Number(new URL(service.url).port));
  const passed: Buffer[] = [];
  const proxy = await startProxy(
    () => ({ to: port }),
    (bytes) => passed.push(bytes),
  );
  closing.push(proxy.close);
  const place = newPlace();
  place.write("ca.pem", certificate);
  const env = {
    BULKGEN_BASE_URL: `https://${name}`,
    BULKGEN_API_KEY: service.key,
    HTTPS_PROXY: proxy.host,
    NODE_EXTRA_CA_CERTS: `${place.folder}/ca.pem`,
  };
  const { code, stdout, stderr } = await start(place, ["account"], { env }).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("100 left");
  expect(service.count("GET me")).toBe(1);
  expect(proxy.tunnels).toEqual([`${name}:443`]);
  expect(passed.length).toBeGreaterThan(0);
  expect(Buffer.concat(passed).includes(service.key)).toBe(false);
});

test("a proxy that wants a login is named, and nothing is sent", async () => {
  const proxy = await startProxy(() => ({ status: 407 }));
  closing.push(proxy.close);
  const place = newPlace();
  const env = {
    BULKGEN_BASE_URL: `https://${name}`,
    BULKGEN_API_KEY: testKey,
    HTTPS_PROXY: `http://me:wrong@${proxy.host}`,
  };
  const { code, stderr } = await run(place, ["account"], { env });
  expect(code).toBe(4);
  expect(stderr).toContain(
    "the proxy (HTTPS_PROXY) answered 407; it wants a login, as in http://USER:PASSWORD@HOST:PORT. Nothing was submitted.",
  );
  expect(stderr).not.toContain("wrong");
});

test("a variable that names no proxy is a usage error", async () => {
  const place = newPlace();
  const env = {
    BULKGEN_BASE_URL: `https://${name}`,
    BULKGEN_API_KEY: testKey,
    HTTPS_PROXY: "socks5://secret@proxy:1080",
  };
  const { code, stderr } = await run(place, ["account"], { env });
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr:
      "bulkgen: HTTPS_PROXY: expected the address of a proxy, such as http://proxy.example:3128, got something else. Nothing was sent.\n",
  });
});
