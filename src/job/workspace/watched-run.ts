import type { Clock } from "../../clock.js";
import { plus } from "../../core/money.js";
import type { Run, Store } from "../../core/ports/store.js";
import type { Quota } from "../../core/quota/quota.js";
import type { Progress } from "../../run/loop.js";
import { openQuota, type QuotaReader } from "../../store/accounts/quota-reader.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { lockOwnerOf } from "./lock-owner.js";
import type { Workspace } from "./workspace.js";

/** A run that another process executes, as that process records it. Nothing is changed, and nobody is asked. */
export interface WatchedRun {
  run: Run;
  /** When the process began with it (UTC ms). */
  since: number;
  /** Where it stands now; null once no process executes it any more. */
  progress(): Promise<Progress | null>;
  close(): Promise<void>;
}

/** Null if there is no such run, or if no process executes it. */
export async function watchRun(
  workspace: Workspace,
  which: number | "newest",
  clock: Clock,
): Promise<WatchedRun | null> {
  const store = openWorkspace(workspace, clock);
  const run = await store.run(which);
  const lockOwner = run && ownerOf(workspace, run);
  if (!run || !lockOwner) {
    await store.close();
    return null;
  }
  const quota = quotaReader(workspace, run);
  return {
    run,
    since: Math.max(run.startedAt, lockOwner.since),
    async progress() {
      if (ownerOf(workspace, run) === null) return null;
      const now = clock.now();
      return progressOf(store, run, readQuota(quota, now) ?? unknownQuota, now);
    },
    async close() {
      quota?.close();
      await store.close();
    },
  };
}

function ownerOf({ lockFile }: Workspace, { id }: Run) {
  const lockOwner = lockOwnerOf(lockFile);
  return lockOwner?.run === id ? lockOwner : null;
}

/** A view without the quota is better than none. */
function quotaReader({ accountsFile }: Workspace, { origin, accountId }: Run): QuotaReader | null {
  try {
    return openQuota(accountsFile, origin, accountId);
  } catch {
    return null;
  }
}

function readQuota(reader: QuotaReader | null, now: number): Quota | null {
  try {
    return reader?.read(now) ?? null;
  } catch {
    return null;
  }
}

/** No limit is known of an account that cannot be read. */
const unknownQuota: Quota = {
  minute: { limit: null, used: 0, nextFreeAt: 0, nextReleaseAt: null },
  day: { limit: null, used: 0, nextFreeAt: 0, nextReleaseAt: null },
  releases: [],
  pacing: { spacingMs: 0, nextAt: 0 },
  owedElsewhere: 0,
  blockedUntil: null,
};

async function progressOf(
  store: Pick<Store, "counts" | "spending">,
  { id, options }: Run,
  quota: Quota,
  now: number,
): Promise<Progress> {
  const { charged, pending } = await store.spending(id);
  const { blockedUntil, day } = quota;
  return {
    counts: await store.counts(id),
    quota,
    // That the minute is full is shown by its quota alone.
    waiting: blockedUntil !== null ? "service" : day.nextFreeAt > now ? "day" : null,
    until: blockedUntil ?? day.nextFreeAt,
    stops: [],
    diskTrouble: null,
    outage: null,
    hold: null,
    spent: plus(charged, pending),
    cap: options.maxCredits ?? null,
    forecastMs: options.forecast?.ms ?? null,
  };
}
