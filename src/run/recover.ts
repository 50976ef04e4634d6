import type { Session } from "./session.js";
import { leaveUnknown } from "./submit.js";

/**
 * What a process that ended in the middle left behind: items whose POST may or may not have reached the service. The
 * workspace's lock is held, so no other process can be at work on them. Returns how many there were.
 */
export async function recover(session: Pick<Session, "ports">): Promise<number> {
  const items = await session.ports.store.interrupted();
  for (const item of items) {
    const attempt = await session.ports.store.attempt(item.id);
    if (!attempt) throw new Error(`item ${item.id} is submitting without an attempt`);
    await leaveUnknown(session, attempt, "the process ended before the answer was read");
  }
  return items.length;
}
