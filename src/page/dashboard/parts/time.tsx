import { useEffect, useState } from "preact/hooks";
import { localTime } from "../../../text/times.js";
import { every, now } from "../system.js";
import { ago } from "./amounts.js";

/** The time, every second. */
export function useTime(): number {
  const [time, setTime] = useState(now);
  useEffect(() => every(1_000, () => setTime(now())), []);
  return time;
}

/** A time as people say it, with the exact one as its title. */
export function Time({ at, now: seen }: { at: number; now: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={localTime(at)}>
      {ago(at, seen)}
    </time>
  );
}
