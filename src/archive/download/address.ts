import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import ipaddr, { type IPv4, type IPv6 } from "ipaddr.js";

/**
 * Which addresses an output may be fetched from. The service names the URLs, so a broken or hostile answer must not
 * make this machine read its own network or its cloud's metadata. A name can point anywhere and change between two
 * lookups, so the rule is applied when connecting, to the address that is about to be connected to.
 */

/** An output URL that the rule refuses. Trying again does not help. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

type Reach = "public" | "loopback" | "private" | "link-local" | "reserved" | "metadata";

/** Addresses at which clouds hand out credentials. They are never allowed. */
const metadata = new Set([
  "169.254.169.254",
  "169.254.170.2",
  "100.100.100.200",
  "192.0.0.192",
  "168.63.129.16",
  "fd00:ec2::254",
  "fd20:ce::254",
]);

/** How ipaddr.js names ranges; what is not here and not global unicast is reserved. */
const reaches: Readonly<Record<string, Reach>> = {
  loopback: "loopback",
  private: "private",
  carrierGradeNat: "private",
  uniqueLocal: "private",
  deprecatedSiteLocal: "private",
  linkLocal: "link-local",
};
const globalUnicast6 = ipaddr.parseCIDR("2000::/3");
/** On networks with IPv6 only, a translator makes these of IPv4 addresses. */
const translated = ipaddr.parseCIDR("64:ff9b::/96");

/** How far an address reaches. An IPv4 address inside an IPv6 one counts as what it is. */
export function reachOf(address: string): Reach {
  const bare = address.replace(/%.*$/, "");
  return isIP(bare) === 0 ? "reserved" : reachOfParsed(ipaddr.process(bare));
}

function reachOfParsed(address: IPv4 | IPv6): Reach {
  if (address instanceof ipaddr.IPv6 && address.match(translated))
    return reachOfParsed(ipaddr.fromByteArray(address.toByteArray().slice(12)));
  if (metadata.has(address.toString())) return "metadata";
  const range = address.range();
  const isPublic = range === "unicast" && (address.kind() === "ipv4" || address.match(globalUnicast6));
  return isPublic ? "public" : (reaches[range] ?? "reserved");
}

export interface AddressRule {
  /** Throws AddressRefused when the URL's scheme, user info or literal address is refused. May throw the error of a lookup. */
  check(url: URL): Promise<void>;
  /** Checks the URL, and refuses a name that leads to no allowed address. A name that cannot be resolved here passes. */
  checkName(url: URL): Promise<void>;
  /** For the socket: resolves a name and returns only addresses that are allowed. */
  lookup: LookupFunction;
}

/**
 * The rule for a service at `baseUrl`. Only https, except that a service with plain http on loopback may name plain http.
 * Only public addresses, and addresses of the same kind as the service's own.
 */
export function addressRule(
  baseUrl: string,
  lookup: LookupFunction = systemLookup as LookupFunction,
): AddressRule {
  const base = new URL(baseUrl);
  const plainAllowed = base.protocol === "http:" && isLoopbackHost(hostOf(base));
  let ownReach: Promise<ReadonlySet<Reach>> | undefined;

  /** Rejects if the service's own name cannot be resolved now. */
  async function allows(address: string): Promise<boolean> {
    const reach = reachOf(address);
    if (reach === "public") return true;
    if (reach === "metadata" || reach === "reserved") return false;
    ownReach ??= reachOfHost(hostOf(base), lookup);
    // An error of the name service says nothing about the address, and the next try may succeed.
    ownReach.catch(() => {
      ownReach = undefined;
    });
    return (await ownReach).has(reach);
  }

  const rule: AddressRule = {
    async check(url) {
      if (url.protocol !== "https:" && !(plainAllowed && url.protocol === "http:"))
        throw new AddressRefused(`output address with ${url.protocol} refused; expected https:`);
      if (url.username !== "" || url.password !== "")
        throw new AddressRefused("output address with a user name or password in it refused");
      const host = hostOf(url);
      if (isIP(host) !== 0 && !(await allows(host))) throw refusal(host, [host]);
    },
    async checkName(url) {
      await rule.check(url);
      const host = hostOf(url);
      if (isIP(host) !== 0) return;
      await new Promise<void>((pass, refuse) => {
        rule.lookup(host, {}, (error) => (error instanceof AddressRefused ? refuse(error) : pass()));
      });
    },
    lookup(host, options, callback) {
      void addressesOf(host, options, lookup).then(async ({ error, found }) => {
        if (error !== null) return callback(error, "", 0);
        const addresses = found.map(({ address }) => address);
        const verdicts = await Promise.allSettled(addresses.map(allows));
        const good = found.filter((_, index) => {
          const verdict = verdicts[index];
          return verdict?.status === "fulfilled" && verdict.value;
        });
        const first = good[0];
        const unresolved = verdicts.find((verdict) => verdict.status === "rejected");
        if (first === undefined)
          return callback(unresolved ? (unresolved.reason as Error) : refusal(host, addresses), "", 0);
        if (options.all === true) callback(null, good);
        else callback(null, first.address, first.family);
      });
    },
  };
  return rule;
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

async function reachOfHost(host: string, lookup: LookupFunction): Promise<ReadonlySet<Reach>> {
  if (isLoopbackHost(host)) return new Set(["loopback"]);
  if (isIP(host) !== 0) return new Set([reachOf(host)]);
  const { error, found } = await addressesOf(host, {}, lookup);
  if (error !== null) throw error;
  return new Set(found.map(({ address }) => reachOf(address)));
}

function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || reachOf(host) === "loopback";
}

/** The host without the brackets that a URL has around IPv6 addresses. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}
