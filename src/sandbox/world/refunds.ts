import type { Change, TaskRecord, WorldState } from "../state/state.js";
import type { Switches } from "../state/switches.js";

type Refund = Extract<Change, { kind: "task refunded" }>;

/**
 * The refunds of an account that are due at `now`. Failed tasks are refunded with the first request of the account
 * at or after the moment when the refund is due, whatever it asks for: nobody can see the balance earlier.
 */
export function dueRefunds(
  state: WorldState,
  switches: Switches["refund"],
  accountId: string,
  now: number,
): Refund[] {
  if (switches.at === "seen") return [];
  const delayMs = switches.at === "delayed" ? switches.delayMs : 0;
  return state.refundsDue(accountId, now - delayMs).map((task) => refundOf(task, switches));
}

/** The credits of a failed task given back. */
export function refundOf(task: TaskRecord, { lowersUsed }: Switches["refund"]): Refund {
  const { id: taskId, accountId, keyId, costMicro: micro } = task;
  return { kind: "task refunded", taskId, accountId, keyId, micro, lowersUsed };
}
