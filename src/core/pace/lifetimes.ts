/**
 * How long signed addresses live. A service does not say; some addresses carry the instant of their end, and of the
 * others is learned, host by host, at which age they still worked and at which they had expired. It only decides what is
 * fetched first: an address is tried however old it is, because a clock may be wrong and a try costs nothing.
 */
export interface Lifetime {
  host: string;
  /** The greatest age (ms) at which one worked. */
  workedMs: number;
  /** The least age (ms) at which one had expired; null while none was seen. */
  endedMs: number | null;
}

/** Where nothing is known: short among what object stores are asked for, so that such addresses are not left to wait. */
const assumedMs = 15 * 60_000;

export class Lifetimes {
  private readonly hosts = new Map<string, Lifetime>();

  learn(lifetimes: readonly Lifetime[]): void {
    for (const lifetime of lifetimes) this.hosts.set(lifetime.host, lifetime);
  }

  /** By when to fetch outputs whose addresses came at `now` (UTC ms): the earliest end among them. */
  fetchBy(urls: readonly string[], now: number): number {
    return Math.min(...urls.map((url) => statedEnd(url) ?? now + this.lifeOf(url)));
  }

  /** An address worked at this age, or had expired. Returns what is known of its host now, where that has changed. */
  saw(url: string, ageMs: number, how: "worked" | "expired"): Lifetime | null {
    const host = hostOf(url);
    if (host === null || ageMs < 0) return null;
    const before = this.hosts.get(host) ?? { host, workedMs: 0, endedMs: null };
    const after = how === "worked" ? worked(before, ageMs) : expired(before, ageMs);
    if (after === before) return null;
    this.hosts.set(host, after);
    return after;
  }

  private lifeOf(url: string): number {
    const known = this.hosts.get(hostOf(url) ?? "");
    return known?.endedMs ?? Math.max(assumedMs, known?.workedMs ?? 0);
  }
}

/** Ages that hardly differ are not worth a write each. */
const growth = 1.2;

/** What was seen last holds: a host may be set to another lifetime. */
function worked(lifetime: Lifetime, ageMs: number): Lifetime {
  const outlived = lifetime.endedMs !== null && lifetime.endedMs <= ageMs;
  if (!outlived && ageMs < Math.max(1_000, lifetime.workedMs * growth)) return lifetime;
  return {
    ...lifetime,
    workedMs: Math.max(lifetime.workedMs, ageMs),
    endedMs: outlived ? null : lifetime.endedMs,
  };
}

function expired(lifetime: Lifetime, ageMs: number): Lifetime {
  if (lifetime.endedMs !== null && lifetime.endedMs <= ageMs) return lifetime;
  return { ...lifetime, workedMs: Math.min(lifetime.workedMs, ageMs), endedMs: ageMs };
}

function hostOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).hostname : null;
}

/** The instant (UTC ms) until which an address says that it is good, as object stores sign; null where it does not say. */
export function statedEnd(url: string): number | null {
  if (!URL.canParse(url)) return null;
  const query = new Map([...new URL(url).searchParams].map(([name, value]) => [name.toLowerCase(), value]));
  return (
    lifeFrom(query, "x-amz") ?? lifeFrom(query, "x-goog") ?? instant(query.get("expires") ?? query.get("se"))
  );
}

/** When it was signed, and for how many seconds. */
function lifeFrom(query: ReadonlyMap<string, string>, vendor: string): number | null {
  const signed = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(query.get(`${vendor}-date`) ?? "");
  const seconds = query.get(`${vendor}-expires`) ?? "";
  if (signed === null || !/^\d{1,9}$/.test(seconds)) return null;
  const [year = 0, month = 0, day, hour, minute, second] = signed.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second) + Number(seconds) * 1000;
}

/** Seconds or milliseconds since 1970, or a date. */
function instant(text = ""): number | null {
  if (/^\d{9,10}$/.test(text)) return Number(text) * 1000;
  if (/^\d{12,13}$/.test(text)) return Number(text);
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : at;
}
