import { balanceTold, noCredits } from "../core/money.js";
import { readAccount } from "./account-reading.js";
import type { Session } from "./session.js";

/** Looks at the balance when it is time to, so that a run that waits for credits goes on by itself. */
export async function lookAtBalance(session: Session): Promise<void> {
  const { balanceLook, ports, settings, parked } = session;
  if (!balanceLook?.isOver) return;
  const { planned } = await ports.store.due(settings.run.id, 1, parked, null);
  const read = await readAccount(ports).catch((error: unknown) => {
    ports.log.warn({ error: String(error) }, "the balance could not be read");
    return null;
  });
  if (read) session.requests++;
  const balance = read ? balanceTold(read.me.credits.balance) : null;
  if (read && balance !== null) session.caps.balanceRead(balance, read.mark);
  session.balanceRead(balance, planned[0]?.price ?? noCredits);
}
