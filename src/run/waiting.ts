import { type Credits, plus } from "../core/money.js";
import type { Head, Parked, WaitingGroup } from "../core/next/next.js";
import type { DurationEstimate } from "../core/pace/pace.js";
import type { RunPorts } from "./ports.js";

/** More planned items than this are counted again only every `recountMs`: counting takes long, and the end is far away. */
const manyItems = 2_000;
const recountMs = 2_000;

/** The planned items of a run by group and priority. */
export class WaitingList {
  private counted: { at: number; parked: string; groups: WaitingGroup[] } | null = null;

  constructor(
    private readonly ports: Pick<RunPorts, "store" | "clock">,
    private readonly runId: number,
  ) {}

  async groups(parked: Parked): Promise<WaitingGroup[]> {
    const at = this.ports.clock.monotonic();
    const named = JSON.stringify(parked);
    const items = this.counted?.groups.reduce((sum, group) => sum + group.items, 0) ?? 0;
    const isFresh = this.counted?.parked === named && items > manyItems && at - this.counted.at < recountMs;
    if (this.counted === null || !isFresh) {
      this.counted = { at, parked: named, groups: await this.ports.store.waiting(this.runId, parked) };
    }
    return this.counted.groups;
  }
}

/** The groups to submit from first, at most `limit`: by priority, the longest generations first. */
export function firstHeads(
  groups: readonly WaitingGroup[],
  pace: (group: string) => DurationEstimate,
  limit: number,
): Head[] {
  return groups
    .toSorted((a, b) => b.priority - a.priority || pace(b.group).mean - pace(a.group).mean)
    .slice(0, limit);
}

/** Whether the cap pays for all that is planned. */
export function reachesAll(
  groups: readonly WaitingGroup[],
  committed: Credits,
  cap: Credits | null,
): boolean {
  return cap === null || groups.reduce((sum, { credits }) => plus(sum, credits), committed) <= cap;
}
