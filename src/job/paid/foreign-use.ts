import type { ReconcileSettings } from "../../core/charges/readings.js";
import { inCredits } from "../../core/money.js";
import type { Run } from "../../core/ports/store.js";
import { localTime } from "../../text/times.js";
import type { OpenAccount } from "../workspace/account.js";

/**
 * Two machines know nothing of each other's runs, and a history and a spend log that were restored together agree with
 * each other. Only the key's counters show then that items may have been bought already: the key was charged for requests
 * that this machine did not send.
 */

/** Asks whether to buy all the same; without it nobody can be asked. */
export type AgreeToForeignUse = (what: string) => Promise<boolean>;

/**
 * Why nothing more is bought for a history: what the key was charged elsewhere since this workspace last bought with it.
 * Null if there is nothing, or if it was agreed to.
 */
export async function foreignUse(
  { spendLog }: Pick<OpenAccount, "spendLog">,
  settings: ReconcileSettings,
  agree: AgreeToForeignUse | undefined,
): Promise<string | null> {
  const { credits, since } = await spendLog.foreign(settings);
  if (credits === 0) return null;
  const what = `since ${localTime(since)}, ${inCredits(credits)} were charged to this key for requests that this machine did not send. If this workspace was restored from a copy, or a copy of it is used elsewhere, its items would be paid twice`;
  return agree !== undefined && (await agree(what))
    ? null
    : `${what}. Add --accept-foreign-use to buy all the same`;
}

/** Whether there is a history of this edition: without one, nothing can have been bought for it by a copy. */
export function hasHistory(runs: readonly Run[], edition: string): boolean {
  return runs.some((run) => run.edition === edition);
}
