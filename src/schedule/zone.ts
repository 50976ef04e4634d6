/** A date and time in a zone. */
export interface LocalTime {
  /** `2026-11-21` */
  date: string;
  /** `02:00` */
  time: string;
  /** `Sat` */
  weekday: string;
  /** `CET`, `GMT+11` */
  zone: string;
}

export function localTime(at: number, zone: string): LocalTime {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    weekday: "short",
    timeZoneName: "short",
  }).formatToParts(new Date(at));
  const part = (type: string) => parts.find((each) => each.type === type)?.value ?? "";
  return {
    date: `${part("year")}-${part("month")}-${part("day")}`,
    time: `${part("hour")}:${part("minute")}`,
    weekday: part("weekday"),
    zone: part("timeZoneName"),
  };
}

/** `Sat 2026-11-21 02:00 CET` */
export function localText(at: number, zone: string): string {
  const local = localTime(at, zone);
  return `${local.weekday} ${local.date} ${local.time} ${local.zone}`;
}
