import type { ReconcileSettings } from "../../core/charges/readings.js";
import { inCredits } from "../../core/money.js";
import type { Run } from "../../core/ports/store.js";
import type { Store } from "../../store/workspace/workspace.js";
import { localTime } from "../../text/times.js";
import type { OpenAccount } from "../../workspace/account.js";
import type { EditionChoice } from "./job-of.js";

/**
 * Two machines know nothing of each other's runs, and a history and a spend log that were restored together agree with
 * each other. Only the key's counters show then that items may have been bought already: the key was charged for requests
 * that this machine did not send.
 */

/** Asks whether to buy all the same; without it nobody can be asked. */
export type AgreeToForeignUse = (what: string) => Promise<boolean>;

/**
 * Why nothing more is bought for a history: what the key was charged elsewhere since this workspace last bought with it,
 * or that this machine knows nothing of the history's newest purchase, and so of none that followed it elsewhere. Null if
 * there is nothing, or if it was agreed to.
 */
export async function foreignUse(
  { spendLog }: Pick<OpenAccount, "spendLog">,
  { store, origin }: { store: Pick<Store, "newestPaid"> | null; origin: string },
  settings: ReconcileSettings,
  agree: AgreeToForeignUse | undefined,
): Promise<string | null> {
  const { credits, since } = await spendLog.foreign(settings);
  const newest = (await store?.newestPaid(origin)) ?? null;
  const isUnknown = newest !== null && (await spendLog.entry(newest.entry)) === null;
  if (credits === 0 && !isUnknown) return null;
  const what =
    credits > 0
      ? `since ${localTime(since)}, ${inCredits(credits)} were charged to this key for requests that this machine did not send. If this workspace was restored from a copy, or a copy of it is used elsewhere, its items would be paid twice`
      : `this machine has no record of the newest purchase of this workspace (${localTime(newest?.sentAt ?? 0)}): it was made on another machine, or the record is lost. If this workspace is an older copy, what was made since would be paid twice`;
  return agree !== undefined && (await agree(what))
    ? null
    : `${what}. Add --accept-foreign-use to buy all the same`;
}

/**
 * Whether something of a plan may have been bought by a copy of this workspace. Only what a new numbered edition makes
 * cannot: a person wants it made again each time.
 */
export function mayBeBoughtByCopy(runs: readonly Run[], edition: string, choice: EditionChoice): boolean {
  return choice === "fresh" ? runs.some((run) => run.edition === edition) : runs.length > 0;
}
