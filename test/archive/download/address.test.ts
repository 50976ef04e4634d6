import type { LookupFunction } from "node:net";
import { describe, expect, test } from "vitest";
import { AddressRefused, addressRule, reachOf } from "../../../src/archive/download/address.js";

const service = "https://api.example.com";

test.each([
  ["93.184.216.34", "public"],
  ["2606:4700::1111", "public"],
  ["127.0.0.1", "loopback"],
  ["127.9.9.9", "loopback"],
  ["::1", "loopback"],
  ["::ffff:127.0.0.1", "loopback"],
  ["10.1.2.3", "private"],
  ["172.31.255.255", "private"],
  ["192.168.0.1", "private"],
  ["100.64.0.1", "private"],
  ["fd12::1", "private"],
  ["::ffff:10.0.0.1", "private"],
  ["64:ff9b::a00:1", "private"],
  ["169.254.1.1", "link-local"],
  ["fe80::1%eth0", "link-local"],
  ["169.254.169.254", "metadata"],
  ["::ffff:169.254.169.254", "metadata"],
  ["64:ff9b::a9fe:a9fe", "metadata"],
  ["fd00:ec2::254", "metadata"],
  ["168.63.129.16", "metadata"],
  ["0.0.0.0", "reserved"],
  ["255.255.255.255", "reserved"],
  ["224.0.0.1", "reserved"],
  ["::", "reserved"],
  ["2002:7f00:1::", "reserved"],
  ["::a00:1", "reserved"],
  ["64:ff9b:1::a00:1", "reserved"],
  ["64:ff9b::5db8:d822", "public"],
  ["::ffff:93.184.216.34", "public"],
  ["2001::1", "reserved"],
  ["2001:db8::1", "reserved"],
  ["4000::1", "reserved"],
  ["ff02::1", "reserved"],
  ["fec0::1", "private"],
  ["100.127.255.255", "private"],
  ["198.18.0.1", "reserved"],
  ["239.1.1.1", "reserved"],
  ["100.100.100.200", "metadata"],
  ["not an address", "reserved"],
])("P22: %s is %s", (address, reach) => {
  expect(reachOf(address)).toBe(reach);
});

/** A name service that knows `service`, and what it is told. */
function names(table: Record<string, string[]>): LookupFunction {
  return (host, options, callback) => {
    const known: Record<string, string[]> = { "api.example.com": ["93.184.216.1"], ...table };
    const found = (known[host] ?? []).map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    const first = found[0];
    if (first === undefined) callback(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }), "", 0);
    else if (options.all === true) callback(null, found);
    else callback(null, first.address, first.family);
  };
}

function check(base: string, url: string, lookup = names({})): Promise<string> {
  return addressRule(base, lookup)
    .check(new URL(url))
    .then(
      () => "allowed",
      (error: unknown) => {
        expect(error).toBeInstanceOf(AddressRefused);
        return "refused";
      },
    );
}

describe("what a URL says of itself", () => {
  test.each([
    [service, "https://cdn.example.net/a", "allowed"],
    [service, "http://cdn.example.net/a", "refused"],
    [service, "file:///etc/passwd", "refused"],
    [service, "data:image/png;base64,AAAA", "refused"],
    [service, "https://user:secret@cdn.example.net/a", "refused"],
    [service, "https://user@cdn.example.net/a", "refused"],
    [service, "https://:secret@cdn.example.net/a", "refused"],
    [service, "https://127.0.0.1/a", "refused"],
    [service, "https://2130706433/a", "refused"],
    [service, "https://0x7f.1/a", "refused"],
    [service, "https://[::ffff:7f00:1]/a", "refused"],
    [service, "https://169.254.169.254/latest", "refused"],
    ["http://127.0.0.1:8080", "http://127.0.0.1:9/a", "allowed"],
    ["http://localhost:8080", "http://[::1]:9/a", "allowed"],
    ["http://127.0.0.1:8080", "ftp://127.0.0.1:9/a", "refused"],
    ["http://127.0.0.1:8080", "file:///etc/passwd", "refused"],
    ["http://127.0.0.1:8080", "http://10.0.0.1/a", "refused"],
    ["http://127.0.0.1:8080", "http://169.254.169.254/a", "refused"],
    ["https://127.0.0.1:8080", "http://127.0.0.1:9/a", "refused"],
    ["http://10.0.0.1", "http://10.0.0.1/a", "refused"],
    ["https://10.0.0.1", "https://10.0.0.2/a", "allowed"],
    ["https://10.0.0.1", "https://127.0.0.1/a", "refused"],
    ["https://169.254.169.254", "https://169.254.169.254/a", "refused"],
    ["https://240.0.0.1", "https://240.0.0.1/a", "refused"],
  ])("P22: beside %s, %s is %s", async (base, url, verdict) => {
    expect(await check(base, url)).toBe(verdict);
  });

  test.each([
    ["http://cdn.example.net/a", "output address with http: refused; expected https:"],
    ["https://user@cdn.example.net/a", "output address with a user name or password in it refused"],
    ["https://10.0.0.1/a", "output address 10.0.0.1 refused: it leads to a private address"],
  ])("%s is refused with the reason", async (url, message) => {
    const refused = addressRule(service, names({})).check(new URL(url));
    await expect(refused).rejects.toMatchObject({ name: "AddressRefused", message });
  });

  test("P22: a service known by a name in a private network may have its outputs there", async () => {
    const lookup = names({ "service.intern": ["10.0.0.5"] });
    expect(await check("https://service.intern", "https://10.0.0.9/a", lookup)).toBe("allowed");
    const elsewhere = names({ "service.intern": ["93.184.216.2"] });
    expect(await check("https://service.intern", "https://192.168.0.9/a", elsewhere)).toBe("refused");
  });
});

describe("what a name leads to", () => {
  function resolve(
    base: string,
    host: string,
    table: Record<string, string[]>,
    all: boolean,
  ): Promise<unknown> {
    return new Promise((done) => {
      addressRule(base, names(table)).lookup(host, { all }, (error, address) => done(error ?? address));
    });
  }

  test("P22: only the allowed addresses of a name are handed to the socket", async () => {
    const table = { "cdn.example.net": ["10.0.0.1", "93.184.216.34", "::1"] };
    expect(await resolve(service, "cdn.example.net", table, true)).toEqual([
      { address: "93.184.216.34", family: 4 },
    ]);
    expect(await resolve(service, "cdn.example.net", table, false)).toBe("93.184.216.34");
  });

  test("P22: a refusal names each kind of address that the name leads to", async () => {
    const table = { "cdn.example.net": ["10.0.0.1", "10.0.0.2", "169.254.169.254"] };
    expect(await resolve(service, "cdn.example.net", table, true)).toMatchObject({
      message: "output address cdn.example.net refused: it leads to a private, metadata address",
    });
  });

  test("P22: a resolver that answers with one address is asked as well", async () => {
    const rule = addressRule(service, ((_: string, __: object, done: (...answer: unknown[]) => void) =>
      done(null, "93.184.216.34", 4)) as unknown as LookupFunction);
    const found = await new Promise((done) => {
      rule.lookup("cdn.example.net", {}, (error, address, family) => done(error ?? [address, family]));
    });
    expect(found).toEqual(["93.184.216.34", 4]);
  });

  test("P22: a name that leads only inwards is refused, in both forms of the question", async () => {
    const table = { "cdn.example.net": ["10.0.0.1", "169.254.169.254"] };
    for (const all of [true, false])
      expect(await resolve(service, "cdn.example.net", table, all)).toBeInstanceOf(AddressRefused);
  });

  test("while the service's own name cannot be resolved, nothing is refused for good", async () => {
    const table: Record<string, string[]> = { "cdn.intern": ["10.0.0.9"] };
    const rule = addressRule("https://service.intern", (host, ...asked) => names(table)(host, ...asked));
    const socket = () =>
      new Promise((done) => {
        rule.lookup("cdn.intern", {}, (error, address) => done(error ?? address));
      });
    expect(await socket()).toMatchObject({ code: "ENOTFOUND" });
    await expect(rule.check(new URL("https://10.0.0.9/a"))).rejects.toMatchObject({ code: "ENOTFOUND" });
    table["service.intern"] = ["10.0.0.5"];
    expect(await socket()).toBe("10.0.0.9");
    await rule.check(new URL("https://10.0.0.9/a"));
  });

  test("an unknown host name is an error of the name service, and may be retried", async () => {
    expect(await resolve(service, "nowhere.example.net", {}, true)).toMatchObject({ code: "ENOTFOUND" });
  });
});
