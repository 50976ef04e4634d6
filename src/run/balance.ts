import { balanceTold, type Credits, noCredits } from "../core/money.js";
import { isLongWait, nextSendAt, type Quota, waitsFor } from "../core/quota/quota.js";
import { readAccount } from "./account-reading.js";
import type { Session } from "./session.js";

/** DuePolls at the balance when it is time to, so that a run that waits for credits goes on by itself. */
export async function readBalanceWhenDue(session: Session): Promise<void> {
  const { balanceLook, ports, settings, parked } = session;
  if (!balanceLook?.isOver) return;
  const { planned } = await ports.store.due(settings.run.id, 1, parked, null);
  session.balanceRead(await readBalance(session), planned[0]?.price ?? noCredits);
}

/**
 * The balance that must be left seems to be reached: it is read once more, because what other workspaces had in flight at
 * the last reading was counted twice perhaps, and what has failed since may be back. Returns whether there is something new; false also
 * where a request would have to wait for long.
 */
export async function recheckBalance(session: Session, committed: Credits, quota: Quota): Promise<boolean> {
  const now = session.ports.clock.now();
  if (isLongWait(waitsFor(quota, now), nextSendAt(quota, now) - now)) return false;
  return session.caps.claimReading(committed) && (await readBalance(session)) !== null;
}

/** The balance; null where it could not be read. */
async function readBalance(session: Session): Promise<Credits | null> {
  const { ports, caps } = session;
  const read = await readAccount(ports).catch((error: unknown) => {
    ports.log.warn({ error: String(error) }, "the balance could not be read");
    return null;
  });
  if (read === null) return null;
  session.requests++;
  const balance = balanceTold(read.me.credits.balance);
  if (balance !== null) caps.takeReading(balance, read.mark);
  return balance;
}
