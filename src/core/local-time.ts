/** A time as people read it, in the zone of this machine: `2026-11-20 07:30`. */
export function localMinute(at: number): string {
  const date = new Date(at);
  const two = (number: number) => `${number}`.padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** The same with the zone that holds then: `2026-11-20 07:30 CET`. */
export function localTime(at: number): string {
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(at);
  return `${localMinute(at)} ${parts.find(({ type }) => type === "timeZoneName")?.value}`;
}

/** The day of an instant (UTC ms) in the local time zone, as `2026-11-21`. */
export function localDay(at: number): string {
  const day = new Date(at);
  const two = (number: number) => String(number).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}
