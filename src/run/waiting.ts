import type { ServiceClock } from "../client/service-clock.js";
import { type Credits, plus } from "../core/money.js";
import type { Head, Parked, View, WaitingGroup } from "../core/next/next.js";
import type { DurationEstimate } from "../core/pace/pace.js";
import type { Claim } from "../core/ports/accounts.js";
import { owedRequests } from "../core/quota/quota.js";
import type { RunPorts, RunSettings } from "./ports.js";

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
export function coversAll(groups: readonly WaitingGroup[], committed: Credits, cap: Credits | null): boolean {
  return cap === null || groups.reduce((sum, { credits }) => plus(sum, credits), committed) <= cap;
}

/** A name of its own for each run of the account: another job of the workspace must not overwrite what this one owes. */
export function claimantOf({
  ports: { workspace },
  settings: { run },
}: {
  ports: Pick<RunPorts, "workspace">;
  settings: Pick<RunSettings, "run">;
}): string {
  return `${workspace} run ${run.id}`;
}

/** The day's requests that a run owes to its open tasks, and what it has told the account's other runs in any workspace. */
export class Debt {
  private requests = 0;
  private reported: number | null = null;

  constructor(
    private readonly ports: Pick<RunPorts, "accounts" | "accountId">,
    private readonly claimant: string,
  ) {}

  is(counts: View["counts"]): void {
    this.requests = owedRequests(counts);
  }

  /** One more item is to be submitted: what is owed then, which the account learns with its reservation. */
  grow(): Claim {
    this.requests++;
    this.reported = this.requests;
    return { claimant: this.claimant, requests: this.requests };
  }

  /** It was not submitted after all. */
  shrink(): void {
    this.requests--;
    this.reported = null;
  }

  /** Reports the debt, so that requests that this run no longer needs are free for others. */
  async report(): Promise<void> {
    if (this.reported === this.requests) return;
    const { accounts, accountId } = this.ports;
    await accounts.owes(accountId, { claimant: this.claimant, requests: this.requests });
    this.reported = this.requests;
  }
}

/** Whether overdue tasks, and nothing else, keep a run open for a while. */
export class OverdueWait {
  /** Milliseconds for which they alone have kept it open; null while they do not. */
  private lasts: (() => number) | null = null;

  constructor(
    private readonly time: ServiceClock,
    private readonly forMs: number,
  ) {}

  /** `overdue` tasks are open; `hasOthers`: something else that may continue keeps the run open. */
  keepsOpen(overdue: number, hasOthers: boolean): boolean {
    if (overdue === 0 || hasOthers) this.lasts = null;
    else this.lasts ??= this.time.stopwatch();
    return this.lasts === null ? overdue > 0 && this.forMs > 0 : this.lasts() < this.forMs;
  }

  /** Milliseconds until that time is over; null before it has started. */
  get leftMs(): number | null {
    return this.lasts === null ? null : this.forMs - this.lasts();
  }
}
