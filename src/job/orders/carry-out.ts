import type { Clock } from "../../clock.js";
import type { ItemState } from "../../core/item.js";
import type { OrderOutcome, RunOrder } from "../../core/ports/orders.js";
import type { Run, Store } from "../../core/ports/store.js";
import { count } from "../../report/amounts.js";
import { resumeCommand } from "../../report/resume-command.js";

/** An order is carried out by whoever holds the workspace. */
export interface CarryOut {
  store: Store;
  clock: Clock;
  /** A process is at work on the order's run, and these items of it are being worked on. */
  atWork: ReadonlySet<number> | null;
}

/** Changes the run as ordered, and says what came of it. What is refused changes nothing. */
export async function carryOut(how: CarryOut, run: Run, order: RunOrder): Promise<OrderOutcome> {
  const over = run.state === "finished" || (run.state === "cancelled" && !run.owes);
  if (over)
    return { kind: "refused", message: `run ${run.id} is ${run.state}; nothing is left to ${order.do}` };
  return { kind: "done", message: await (order.do === "pause" ? pause(how, run) : cancel(how, run)) };
}

async function pause({ store, clock, atWork }: CarryOut, run: Run): Promise<string> {
  if (run.state !== "cancelled") await store.setRun(run.id, { state: "paused" });
  const goOn = `\`${resumeCommand(run, false)}\` goes on`;
  if (atWork) return `run ${run.id} is paused: what is under way is awaited, nothing new begins; ${goOn}`;
  await closed(store, clock, run);
  return `run ${run.id} is paused, and no process was at work on it; ${goOn}`;
}

async function cancel({ store, clock, atWork }: CarryOut, run: Run): Promise<string> {
  const dropped = await store.cancelRun(run.id, atWork ?? new Set());
  const counts = await store.counts(run.id);
  const owed = paidFor.reduce((sum, state) => sum + counts[state], 0);
  const nothing = dropped === 0 ? "no item was left to submit" : `${count(dropped, "item")} not submitted`;
  const said = `run ${run.id} is cancelled: ${nothing}`;
  if (!atWork) await closed(store, clock, run);
  if (owed === 0) return said;
  return atWork
    ? `${said}; the ${count(owed, "item")} at the service ${owed === 1 ? "is" : "are"} still collected by the process at work`
    : `${said}; \`${resumeCommand(run, false)}\` collects the ${count(owed, "item")} at the service, paid for or perhaps paid for`;
}

const paidFor: readonly ItemState[] = ["submitting", "unknown", "processing", "overdue", "ready"];

/** A run that was cut off has no end on record. */
async function closed(store: Store, clock: Clock, { id, endedAt }: Run): Promise<void> {
  if (endedAt === null) await store.setRun(id, { endedAt: clock.now() });
}
