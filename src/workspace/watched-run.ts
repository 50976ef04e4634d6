import type { Clock } from "../clock.js";
import { plus } from "../core/money.js";
import type { Run } from "../core/ports/store.js";
import type { Quota } from "../core/quota/quota.js";
import type { Progress } from "../run/loop.js";
import type { QuotaReader } from "../store/accounts/quota-reader.js";
import type { Store } from "../store/workspace/workspace.js";
import { lockOwnerOf } from "./lock.js";
import { type Opened, openQuota, openStore } from "./state.js";
import type { Workspace } from "./workspace.js";

/** A run that another process executes, as that process records it. Changes nothing and works offline. */
export interface WatchedRun {
  run: Run;
  /** When the process began with it (UTC ms). */
  since: number;
  /** Its current progress; null once no process executes it any more. */
  progress(): Promise<Progress | null>;
  close(): Promise<void>;
}

/** Null if there is no such run, or if no process executes it. */
export async function watchRun(
  workspace: Workspace,
  which: number | "newest",
  clock: Clock,
): Promise<WatchedRun | null> {
  const store = await openStore(workspace, clock);
  const run = await store.run(which);
  const lockOwner = run && (await ownerOf(workspace, run));
  if (!run || !lockOwner) {
    await store.close();
    return null;
  }
  const quota = await quotaReader(workspace, run, clock);
  return {
    run,
    since: Math.max(run.startedAt, lockOwner.since),
    async progress() {
      const owner = await ownerOf(workspace, run);
      if (owner === null) return null;
      const now = clock.now();
      const progress = await progressOf(store, run, (await readQuota(quota, run, now)) ?? unknownQuota);
      return {
        ...progress,
        reason: owner.reason ?? null,
        forecastMs: owner.forecastMs ?? progress.forecastMs,
      };
    },
    async close() {
      await quota?.close();
      await store.close();
    },
  };
}

async function ownerOf(workspace: Workspace, { id }: Run) {
  const lockOwner = await lockOwnerOf(workspace);
  return lockOwner?.run === id ? lockOwner : null;
}

/** A view without the quota is better than none. */
async function quotaReader(
  workspace: Workspace,
  run: Run,
  clock: Clock,
): Promise<Opened<QuotaReader> | null> {
  try {
    return await openQuota(workspace, run, clock);
  } catch {
    return null;
  }
}

async function readQuota(reader: QuotaReader | null, { options }: Run, now: number): Promise<Quota | null> {
  try {
    return (await reader?.read(now, options)) ?? null;
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
): Promise<Progress> {
  const { charged, pending } = await store.spending(id);
  return {
    counts: await store.counts(id),
    quota,
    reason: null,
    stops: [],
    spent: plus(charged, pending),
    cap: options.maxCredits ?? null,
    forecastMs: options.forecast?.ms ?? null,
  };
}
