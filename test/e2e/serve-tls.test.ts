import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { get as getPlain } from "node:http";
import { get } from "node:https";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { afterThisFile } from "../after-file.js";
import { certificate, privateKey } from "../certificate.js";
import { startProxy } from "../proxy/server.js";
import { newPlace, type Place, run, start, started } from "./command.js";

/** `bulkgen serve --tls-cert --tls-key`, with a certificate of service.example. */
const name = "service.example";
const tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];

function banners(): Place {
  const at = newPlace();
  at.write(
    "banner.svg",
    `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>{{ prompt }}</text></svg>`,
  );
  at.write(
    "models.yaml",
    "models: [{ key: banner, provider: { kind: template }, category: image, credits: 1, template: banner.svg }]",
  );
  at.write("cert.pem", certificate);
  at.write("key.pem", privateKey);
  return at;
}

/** What `bulkgen serve` prints when it listens. */
async function serving(at: Place, ...flags: string[]) {
  const command = started(at, ["serve", ...flags], { serves: true });
  const [, key = ""] = await command.prints(/BULKGEN_API_KEY=(\w+)/);
  const printed = command.stdout();
  const [, url = ""] = /served at (\S+)\. /.exec(printed) ?? [];
  const [, port] = /https:\/\/127\.0\.0\.1:(\d+)/.exec(printed) ?? [];
  const end = async () => {
    command.interrupt();
    expect((await command.ended).code).toBe(0);
  };
  return { url, key, port: Number(port), end };
}

test("https answers on its port, and http does not", async () => {
  const { url, key, port, end } = await serving(banners(), ...tls);
  expect(url).toBe(`https://127.0.0.1:${port}`);
  const headers = { authorization: `Bearer ${key}`, host: "localhost" };
  const how = { host: "127.0.0.1", port, path: "/api/v1/me", headers };
  const [answer] = await once(get({ ...how, ca: certificate, servername: name }), "response");
  expect([answer.statusCode, JSON.parse(await text(answer)).api_key.name]).toEqual([200, "first"]);
  await expect(once(getPlain(how), "response")).rejects.toThrow(/socket hang up|ECONNRESET/);
  // A client that does not know the certificate does not send the key.
  await expect(once(get({ ...how, servername: name }), "response")).rejects.toThrow(
    "self-signed certificate",
  );
  await end();
});

test("a run reaches it by the name of its certificate, and knows no other authority than it is told", async () => {
  const at = banners();
  const { url, key, port, end } = await serving(at, ...tls, "--behind-proxy", `https://${name}/`);
  expect(url).toBe(`https://${name}`);
  const proxy = await startProxy(() => ({ to: port }));
  afterThisFile(() => proxy.close());
  const member = newPlace();
  member.write("set.csv", "id,model,prompt\na,banner,Tea\n");
  member.write("ca.pem", certificate);
  const env = { BULKGEN_BASE_URL: url, BULKGEN_API_KEY: key, HTTPS_PROXY: proxy.host };
  const stranger = await start(member, ["account"], { env }).ended;
  expect([stranger.code, stranger.stderr]).toEqual([4, expect.stringContaining("self-signed certificate")]);
  const known = { ...env, NODE_EXTRA_CA_CERTS: `${member.folder}/ca.pem` };
  const made = await start(member, ["run", "set.csv", "--yes", "--json"], { env: known }).ended;
  expect(made, made.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(made.stdout)).toMatchObject({ counts: { archived: 1 } });
  // Outputs, too, are fetched at the address for clients.
  expect(new Set(proxy.tunnels)).toEqual(new Set([`${name}:443`]));
  await end();
});

test("a command of the same workspace does not take the way over the proxy", async () => {
  const at = banners();
  at.write("bulkgen.config.yaml", "models: models.yaml\n");
  const command = started(at, ["serve", "--behind-proxy", "https://nowhere.invalid"], { serves: true });
  await command.prints(/ {2}page: /);
  const { code, stdout, stderr } = await run(at, ["models", "--json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout).models).toHaveLength(1);
  command.interrupt();
  await command.ended;
});

const { privateKey: other } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const otherKey = other.export({ type: "pkcs8", format: "pem" });
const lockedKey = other.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "open" });

test.each([
  ["a certificate alone", ["--tls-cert", "cert.pem"], "--tls-cert and --tls-key belong together"],
  [
    "a file that is not there",
    ["--tls-cert", "no.pem", "--tls-key", "key.pem"],
    "--tls-cert: there is no file",
  ],
  ["a folder", ["--tls-cert", "cert.pem", "--tls-key", "."], "is a folder; expected a file"],
  [
    "the files the wrong way round",
    ["--tls-cert", "key.pem", "--tls-key", "cert.pem"],
    "key.pem has no certificate in PEM form",
  ],
  ["no key", ["--tls-cert", "cert.pem", "--tls-key", "cert.pem"], "cert.pem has no private key in PEM form"],
  ["a key with a passphrase", ["--tls-cert", "cert.pem", "--tls-key", "locked.pem"], "needs a passphrase"],
  [
    "the key of another certificate",
    ["--tls-cert", "cert.pem", "--tls-key", "other.pem"],
    "other.pem is not the key of the certificate in",
  ],
  ["the network without TLS", ["--host", "0.0.0.0"], "keys would cross the network in the clear"],
  [
    "a proxy without https",
    ["--behind-proxy", "http://models.example.com"],
    "without a path, such as https://",
  ],
  ["a proxy's path", ["--behind-proxy", "https://example.com/models"], "without a path, such as https://"],
])("with %s it says what is wrong and does not start", async (_, flags, message) => {
  const at = banners();
  at.write("other.pem", otherKey);
  at.write("locked.pem", lockedKey);
  const { code, stdout, stderr } = await run(at, ["serve", ...flags]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(message);
  expect(at.files().filter((file) => file.includes(".bulkgen"))).toEqual([]);
});
