import { ago } from "../amounts.js";

/** `4 minutes ago`, with the exact time as its title. */
export function Stamp({ at, now }: { at: number; now: number }) {
  const exact = new Date(at).toISOString();
  return (
    <time dateTime={exact} title={exact}>
      {ago(at, now)}
    </time>
  );
}
