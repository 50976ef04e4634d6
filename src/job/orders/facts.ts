import type { ModelList, Task } from "../../api/records.js";
import { ServiceError } from "../../client/service.js";
import { EarlyExit } from "../../core/exit.js";
import { type GivenOrder, type ItemOrder, isRunOrder } from "../../core/ports/orders.js";
import { freeSlots, NoRequestsUntil, owedRequests, slotsLeft } from "../../core/quota/quota.js";
import type { Session } from "../../run/ports.js";
import { claimantOf } from "../../run/waiting.js";
import type { OpenAccount } from "../../workspace/account.js";

/** Whether the service must be asked before an order can be applied. */
export function needsFacts(order: ItemOrder): boolean {
  return order.do === "adopt" || order.do === "redo";
}

/** Looks up at the service what an order depends on. */
export type ServiceLookup = Pick<OpenAccount, "service" | "models">;

/** Asks the service what the order depends on. Throws EarlyExit. */
export async function factsFor(order: ItemOrder, account: ServiceLookup): Promise<Facts> {
  if (order.do === "redo") return { models: await account.models() };
  if (order.do === "adopt") return { task: await taskOf(order.task, account) };
  return {};
}

function taskOf(taskId: string, { service }: ServiceLookup): Promise<Task> {
  return service.taskRecord(taskId).catch((error: unknown) => {
    if (!(error instanceof ServiceError)) throw error;
    if (error.kind === "interrupted") throw new EarlyExit("interrupted", "interrupted; nothing was changed");
    const reason = error.message.replace(/\.$/, "");
    throw new EarlyExit("usage", `task ${taskId} cannot be adopted: ${reason}. Nothing was changed.`);
  });
}

/** What an order depends on: the task to adopt, today's prices. */
export interface Facts {
  task?: Task;
  models?: ModelList;
}

/**
 * Asks the service about orders beside the loop, which must not wait for it. A request is made only if a slot is free
 * now and no paid work needs that slot.
 */
export class OrderFacts {
  private readonly known = new Map<number, Facts | Error>();
  private readonly asking = new Map<number, Promise<void>>();

  constructor(
    private readonly session: Session,
    private readonly account: ServiceLookup,
  ) {}

  /** Asks what an order depends on, unless it is known or being asked. */
  async ask({ id, order }: GivenOrder): Promise<void> {
    if (isRunOrder(order) || !needsFacts(order) || this.known.has(id) || this.asking.has(id)) return;
    if (!(await this.hasSlot())) return;
    this.asking.set(id, this.read(id, order));
  }

  /** Null until known. Throws EarlyExit if the service refused. */
  of({ id, order }: GivenOrder): Facts | null {
    if (isRunOrder(order) || !needsFacts(order)) return {};
    const found = this.known.get(id) ?? null;
    if (found instanceof Error) throw found;
    return found;
  }

  async close(): Promise<void> {
    await Promise.all(this.asking.values());
  }

  private async hasSlot(): Promise<boolean> {
    const { accounts, accountId, clock, store } = this.session.ports;
    const quota = await accounts.quota(accountId, claimantOf(this.session));
    const owed = owedRequests(await store.counts(this.session.settings.run.id));
    return freeSlots(quota, clock.now()) >= 1 && slotsLeft(quota.day) - owed - quota.owedElsewhere >= 1;
  }

  private async read(id: number, order: ItemOrder): Promise<void> {
    this.session.gate.requests++;
    const found = await factsFor(order, this.account).catch((error: unknown) =>
      error instanceof Error ? error : new Error(String(error)),
    );
    this.asking.delete(id);
    if (!isPassing(found)) this.known.set(id, found);
    this.session.ports.bell.ring();
  }
}

/** Interrupted, or no requests left: the waiting command applies the order itself when this process has ended. */
function isPassing(found: Facts | Error): boolean {
  const ends = found instanceof EarlyExit && (found.exit === "interrupted" || found.exit === "unfinished");
  return ends || found instanceof NoRequestsUntil;
}
