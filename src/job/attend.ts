import type { Clock } from "../clock.js";
import type { Store } from "../core/store.js";
import type { Session } from "../run/session.js";
import { carryOut } from "./carry-out.js";

/** Milliseconds between two looks for orders: they are carried out within a second. */
const lookMs = 500;

/** The orders that come in while a run is carried on. */
export interface Attendance {
  /** Carries out what was ordered; the loop calls it between two turns. */
  attend(busy: ReadonlySet<number>): Promise<void>;
  close(): void;
}

interface AttendOptions {
  store: Store;
  clock: Clock;
  session: Session;
}

/**
 * Looks for orders and wakes the loop for them. Orders that are there already were given to a process that is gone, and
 * whoever still waits for them gives them again.
 */
export async function attendOrders({ store, clock, session }: AttendOptions): Promise<Attendance> {
  for (const { id } of await store.waitingOrders()) {
    await store.settle(id, { kind: "void", message: "the process that was at work has ended" });
  }
  const over = new AbortController();
  let waiting = false;
  const look = async () => {
    while (!over.signal.aborted) {
      await clock.sleep(lookMs, over.signal);
      // A database that cannot be read is the loop's to tell.
      const orders = over.signal.aborted ? [] : await store.waitingOrders().catch(() => [null]);
      if (orders.length === 0) continue;
      waiting = true;
      session.wake();
    }
  };
  void look();
  return {
    async attend(busy) {
      if (!waiting) return;
      waiting = false;
      await carryOutAll(store, clock, session, busy);
    },
    close: () => over.abort(),
  };
}

async function carryOutAll(
  store: Store,
  clock: Clock,
  session: Session,
  busy: ReadonlySet<number>,
): Promise<void> {
  const own = session.settings.run.id;
  for (const { id, runId, order } of await store.waitingOrders()) {
    const run = await store.run(runId);
    if (!run) throw new Error(`an order for run ${runId}, which is gone`);
    const outcome = await carryOut({ store, clock, atWork: runId === own ? busy : null }, run, order);
    if (runId === own && outcome.kind === "done") stopFor(session, order.do);
    await store.settle(id, outcome);
  }
}

function stopFor(session: Session, what: "pause" | "cancel"): void {
  if (what === "pause") session.stop("paused", "the run was paused");
  else session.stop("cancelled", "the run was cancelled; what was submitted before is collected");
}
