import { useEffect, useState } from "preact/hooks";
import { localTime } from "../../../text/times.js";
import { ago } from "../../parts/amounts.js";
import { every, now } from "../system.js";

/** The time, every second. */
export function useTime(): number {
  const [time, setTime] = useState(now);
  useEffect(() => every(1_000, () => setTime(now())), []);
  return time;
}

/** The UTC ms of a time in ISO 8601. */
export function msOf(iso: string): number {
  return Date.parse(iso);
}

/** A time, as UTC ms or in ISO 8601, as people say it, with the exact one as its title. */
export function Time({ at, now: seen }: { at: number | string; now: number }) {
  const ms = typeof at === "string" ? msOf(at) : at;
  return (
    <time dateTime={new Date(ms).toISOString()} title={localTime(ms)}>
      {ago(ms, seen)}
    </time>
  );
}
