import type { Running } from "../e2e/process.js";
import type { Chance } from "../sim/chance.js";
import { lastWords, type Phase, type Point, points } from "./points.js";

/** How one process is to end. */
export type Kill =
  /** By itself, at a named point. */
  | { way: "point"; point: Point; nth: number }
  /** So long after its start. */
  | { way: "instant"; ms: number }
  /** The delay after its n-th report. */
  | { way: "event"; nth: number; ms: number }
  /** The same, but stopped for a while before, so that it is killed without running again. */
  | { way: "frozen"; nth: number; ms: number; frozenMs: number };

/** Chooses how a process ends, among the points that what is left to do leads to. */
export function chooseKill(
  chance: Chance,
  phases: readonly Phase[],
  rare: readonly Point[],
  { items, lanes }: { items: number; lanes: number },
): Kill {
  const nth = chance.whole(1, Math.max(1, Math.min(Math.max(4, lanes), items)));
  const kind = chance.next();
  if (kind < 0.65) {
    const possible = (list: readonly Point[]) => list.filter((point) => phases.includes(points[point]));
    // Half of them where no process has ended yet, so that every point has its turn.
    const pool = chance.is(0.5) && possible(rare).length > 0 ? rare : (Object.keys(points) as Point[]);
    return { way: "point", point: chance.pick(possible(pool)), nth };
  }
  if (kind < 0.8) return { way: "instant", ms: chance.whole(0, 1_500) };
  if (kind < 0.93) return { way: "event", nth, ms: chance.whole(0, 40) };
  return { way: "frozen", nth, ms: chance.whole(0, 40), frozenMs: chance.whole(50, 300) };
}

export function killText(kill: Kill): string {
  if (kill.way === "point") return `${kill.point}:${kill.nth}`;
  if (kill.way === "instant") return `after ${kill.ms} ms`;
  return `${kill.ms} ms after event ${kill.nth}${kill.way === "frozen" ? `, frozen ${kill.frozenMs} ms` : ""}`;
}

/** Sees to it that the process ends so. At a point it does that by itself. */
export async function inflict(kill: Kill, running: Running): Promise<void> {
  if (kill.way === "point") return;
  if (kill.way === "instant") await within(kill.ms, running);
  else {
    await told(running, kill.nth);
    await within(kill.ms, running);
  }
  if (kill.way === "frozen") {
    running.signal("SIGSTOP");
    await pause(kill.frozenMs);
  }
  running.signal("SIGKILL");
}

/** The point at which a process says that it ended. */
export function endedAt(stderr: string): string | null {
  return new RegExp(`${lastWords} (\\S+)`).exec(stderr)?.[1] ?? null;
}

/** Resolves when the process has told so many events, or has ended. */
export async function told(running: Running, events: number): Promise<void> {
  await running.prints(new RegExp(`(?:^\\{[^\\n]*\\n[^]*?){${events}}`, "m")).catch(() => undefined);
}

/** So long, or until the process has ended. */
async function within(ms: number, running: Running): Promise<void> {
  await Promise.race([pause(ms), running.ended]);
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
