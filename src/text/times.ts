/** The day of an instant (UTC ms) in the zone of this machine, as `2026-11-21`. */
export function localDay(at: number): string {
  const day = new Date(at);
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

/** A time as people read it: `2026-11-20 07:30`. */
export function localMinute(at: number): string {
  const date = new Date(at);
  return `${localDay(at)} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** A time as people read it, with the zone that holds at that time: `2026-11-20 07:30 CET`. */
export function localTime(at: number): string {
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(at);
  return `${localMinute(at)} ${parts.find(({ type }) => type === "timeZoneName")?.value}`;
}

function two(number: number): string {
  return `${number}`.padStart(2, "0");
}

/** A time (UTC ms) in ISO 8601. */
export function iso(at: number): string {
  return new Date(at).toISOString();
}

export function isoOrNull(at: number | null): string | null {
  return at === null ? null : iso(at);
}
