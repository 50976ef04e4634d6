import { lookup as systemLookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";

/**
 * Which addresses an output may be fetched from. The service names the URLs, so a broken or hostile answer must not
 * make this machine read its own network or its cloud's metadata for it. A name can point anywhere and change between
 * two looks, so the rule is asked at connect time about the very address that is about to be connected to.
 */

/** An output URL that the rule refuses; asking again will not help. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

type Reach = "public" | "loopback" | "private" | "link-local" | "reserved" | "metadata";

/** The first list that holds an address decides. Addresses that hand out credentials stand first: never allowed. */
const ranges: readonly [Reach, readonly string[]][] = [
  [
    "metadata",
    ["169.254.169.254/32", "169.254.170.2/32", "100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32"],
  ],
  ["loopback", ["127.0.0.0/8"]],
  ["private", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"]],
  ["link-local", ["169.254.0.0/16"]],
  [
    "reserved",
    ["0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"],
  ],
  ["reserved", ["192.88.99.0/24", "224.0.0.0/4", "240.0.0.0/4"]],
];
const ranges6: readonly [Reach, readonly string[]][] = [
  ["metadata", ["fd00:ec2::254/128", "fd20:ce::254/128"]],
  ["loopback", ["::1/128"]],
  ["private", ["fc00::/7", "fec0::/10"]],
  ["link-local", ["fe80::/10"]],
  [
    "reserved",
    ["::/96", "100::/64", "2001::/32", "2001:db8::/32", "2002::/16", "64:ff9b:1::/48", "ff00::/8"],
  ],
];

const lists: readonly [Reach, BlockList][] = ranges.flatMap(([reach, subnets]) => [
  [reach, listOf(subnets, "", 0)] as [Reach, BlockList],
  // On networks with IPv6 only, a translator makes these of IPv4 addresses.
  [reach, listOf(subnets, "64:ff9b::", 96)] as [Reach, BlockList],
]);
const lists6 = ranges6.map(([reach, subnets]): [Reach, BlockList] => [reach, listOf(subnets, "", 0)]);

function listOf(subnets: readonly string[], prefix: string, prefixBits: number): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = "", bits = ""] = subnet.split("/");
    list.addSubnet(
      prefix + address,
      prefixBits + Number(bits),
      `${prefix}${address}`.includes(":") ? "ipv6" : "ipv4",
    );
  }
  return list;
}

/** How far an address reaches. IPv4 addresses in IPv6 clothes count as what they are. */
export function reachOf(address: string): Reach {
  const bare = address.replace(/%.*$/, "");
  const family = isIP(bare);
  if (family === 0) return "reserved";
  const hit = [...lists, ...lists6].find(([, list]) => list.check(bare, family === 6 ? "ipv6" : "ipv4"));
  return hit?.[0] ?? "public";
}

export interface AddressRule {
  /** Throws AddressRefused when the URL's scheme, its user info, or its address (where written as one) is refused. */
  check(url: URL): Promise<void>;
  /** For the socket: looks a name up and hands on only addresses that are allowed. */
  lookup: LookupFunction;
}

/**
 * The rule for a service at `baseUrl`: https only, plain http only beside a service that is itself plain http on
 * loopback; public addresses only, and besides those of the kind the service itself lives at.
 */
export function addressRule(
  baseUrl: string,
  lookup: LookupFunction = systemLookup as LookupFunction,
): AddressRule {
  const base = new URL(baseUrl);
  const plainAllowed = base.protocol === "http:" && isLoopbackHost(hostOf(base));
  let ownReach: Promise<ReadonlySet<Reach>> | undefined;

  async function allows(address: string): Promise<boolean> {
    const reach = reachOf(address);
    if (reach === "public") return true;
    if (reach === "metadata" || reach === "reserved") return false;
    ownReach ??= reachesOf(hostOf(base), lookup);
    return (await ownReach).has(reach);
  }

  return {
    async check(url) {
      if (url.protocol !== "https:" && !(plainAllowed && url.protocol === "http:"))
        throw new AddressRefused(`output address with ${url.protocol} refused; expected https:`);
      if (url.username !== "" || url.password !== "")
        throw new AddressRefused("output address with a user name or password in it refused");
      const host = hostOf(url);
      if (isIP(host) !== 0 && !(await allows(host))) throw refusal(host, [host]);
    },
    lookup(host, options, callback) {
      void addressesOf(host, options, lookup).then(async ({ error, found }) => {
        if (error !== null) return callback(error, "", 0);
        const verdicts = await Promise.all(found.map(({ address }) => allows(address)));
        const good = found.filter((_, index) => verdicts[index]);
        const first = good[0];
        if (first === undefined)
          return callback(
            refusal(
              host,
              found.map(({ address }) => address),
            ),
            "",
            0,
          );
        if (options.all === true) callback(null, good);
        else callback(null, first.address, first.family);
      });
    },
  };
}

function refusal(host: string, addresses: string[]): AddressRefused {
  const kinds = [...new Set(addresses.map(reachOf))].join(", ");
  return new AddressRefused(`output address ${host} refused: it leads to a ${kinds} address`);
}

interface Found {
  error: NodeJS.ErrnoException | null;
  found: { address: string; family: number }[];
}

/** All addresses of a name. Never rejects: the error is part of the answer. */
function addressesOf(host: string, options: object, lookup: LookupFunction): Promise<Found> {
  return new Promise((resolve) => {
    lookup(host, { ...options, all: true }, (error, answer, family) => {
      const found = Array.isArray(answer) ? answer : [{ address: answer, family: family ?? isIP(answer) }];
      resolve({ error, found: error === null ? found : [] });
    });
  });
}

async function reachesOf(host: string, lookup: LookupFunction): Promise<ReadonlySet<Reach>> {
  if (isLoopbackHost(host)) return new Set(["loopback"]);
  if (isIP(host) !== 0) return new Set([reachOf(host)]);
  const { found } = await addressesOf(host, {}, lookup);
  return new Set(found.map(({ address }) => reachOf(address)));
}

function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || reachOf(host) === "loopback";
}

/** A URL writes IPv6 addresses in brackets; everything else wants them bare. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}
