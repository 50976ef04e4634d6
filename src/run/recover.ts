import type { Session } from "./session.js";
import { conclude, hold } from "./submit.js";

/**
 * What a process that ended in the middle left behind: items whose POST may or may not have reached the service. Where
 * the receipts have the answer, it counts; else nobody knows. The workspace's lock is held, so no other process can be
 * at work on them. Returns how many there were.
 */
export async function recover(session: Pick<Session, "ports">): Promise<number> {
  const { store, receipts } = session.ports;
  const items = await store.interrupted();
  for (const item of items) {
    if (item.state === "unknown") {
      await hold(session, item.id, item.note ?? "no answer");
      continue;
    }
    const attempt = await store.attempt(item.id);
    if (!attempt) throw new Error(`item ${item.id} is submitting without an attempt`);
    const known = await receipts.answerTo(item.key, attempt.number);
    const lost = { message: "the process ended before the answer was read" };
    await conclude(session, attempt, known ?? { event: "unanswered", outcome: lost });
  }
  return items.length;
}
