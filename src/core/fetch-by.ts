/**
 * In which order outputs are fetched (P15). Signed addresses are deadlines, and some of them carry the instant of their
 * end: those go first, the earliest end first. The others follow in the order in which they came. An address is tried
 * however old it is, because a clock may be wrong and a try costs nothing.
 */
export function fetchBy(urls: readonly string[], now: number): number {
  const ends = urls.map(statedEnd).filter((end) => end !== null);
  return ends.length > 0 ? Math.min(...ends) : now + afterStatedMs;
}

/** Longer than any address is signed for, so that addresses without an end come after those with one. */
const afterStatedMs = 366 * 24 * 60 * 60_000;

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
