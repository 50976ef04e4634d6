import { fingerprint } from "../../src/api/key.js";
import type { Task } from "../../src/api/records.js";
import { EarlyExit } from "../../src/core/exit.js";
import type { Item } from "../../src/core/ports/store.js";
import { adopt, refetch } from "../../src/job/orders/resolve.js";
import type { TaskRecord } from "../../src/service/state/state.js";
import { isFinal, taskView } from "../../src/service/world/present.js";
import type { SpendLog } from "../../src/store/accounts/spend-log.js";
import { skippedNote } from "./auditor.js";
import type { Machine } from "./machine.js";
import type { Scenario } from "./scenario.js";
import { ownKey } from "./service.js";
import { isCancelled, itemNumbered, type Job, origin, type Workspace } from "./workspace.js";

/** The service's own books, as its support reads them. */
export interface MendedService {
  ledger: { tasks: ReadonlyMap<string, TaskRecord>; madeFor: ReadonlyMap<string, string> };
}

/**
 * The user who settles what a run has left, once for each job: failed items are tried again, as `bulkgen retry` does; held
 * ones get the task that the service's support names, or are fetched again, or skipped, as `bulkgen resolve` does. That
 * releases the items that wait for them.
 */
export class Mending {
  private readonly mended = new Set<Job>();

  constructor(
    private readonly scenario: Scenario,
    private readonly machine: Machine,
    private readonly service: MendedService,
    private readonly workspace: Workspace,
  ) {}

  /** Whether something of the job can go on now that could not before. */
  async of(job: Job): Promise<boolean> {
    const { mends, otherPrice, cancel } = this.scenario;
    if (!mends || otherPrice || cancel || isCancelled(job) || this.mended.has(job)) return false;
    this.mended.add(job);
    const { store } = this.workspace;
    const items = await store.items(job.run?.id ?? 0, ["failed", "held"]);
    for (const item of items) {
      if (item.state === "failed") await store.apply(item.id, "retry", { nextAt: 0, price: item.price });
      else await this.settle(item);
    }
    return items.length > 0;
  }

  private async settle(item: Item): Promise<void> {
    const { store } = this.workspace;
    const known = (await store.attempt(item.id))?.taskId ?? null;
    const task = known === null ? this.named(item) : null;
    try {
      if (known !== null) await store.together((changes) => refetch(changes, item.id));
      else if (task !== null) await store.adopt(item.id, await adopt(store, this.spendLog(), item, task));
      else await store.apply(item.id, "skipped", { note: skippedNote });
    } catch (error) {
      // The task does not look like the item's, where a clock was wrong: it stays held.
      if (!(error instanceof EarlyExit)) throw error;
    }
  }

  /** The newest task that the service has made for an item. */
  private named(item: Item): Task | null {
    const { tasks, madeFor } = this.service.ledger;
    const id = itemNumbered(this.workspace, item.id);
    const task = [...tasks.values()].findLast((one) => madeFor.get(one.id) === id);
    if (!task) return null;
    const now = this.machine.kernel.now();
    // To adopt a task is to look at it: what a failed one has cost is given back when it is seen.
    if (isFinal(task, now)) task.seenFinal = true;
    return taskView(task, now, () => []) as Task;
  }

  private spendLog(): SpendLog {
    const workspace = `workspace ${this.workspace.number}`;
    return this.machine.accounts.spendLog({ origin, fingerprint: fingerprint(ownKey), workspace });
  }
}
