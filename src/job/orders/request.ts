import type { ModelList, Task } from "../../api/records.js";
import { ServiceError } from "../../client/service.js";
import { EarlyExit } from "../../core/exit.js";
import { type Credits, noCredits, sumOf } from "../../core/money.js";
import { type GivenOrder, type ItemOrder, isRunOrder } from "../../core/ports/orders.js";
import type { Item, Run, Store } from "../../core/ports/store.js";
import { freeSlots, NoRequestsUntil, owedRequests, slotsLeft } from "../../core/quota/quota.js";
import type { Selection } from "../../plan/plan.js";
import {
  isEverything,
  KeyWatch,
  matcherOf,
  type Selectable,
  select,
  selectableItem,
  selectionText,
} from "../../plan/select.js";
import type { Session } from "../../run/ports.js";
import { claimantOf } from "../../run/waiting.js";
import type { OpenAccount } from "../workspace/account.js";

/** What a person wants done with items, found and checked before anything is locked, asked or changed. */
export interface ItemRequest {
  run: Run;
  /** An order that costs something carries the last known price as the agreed one. */
  order: ItemOrder;
  /** The items, as shown before they are paid for. */
  offered: readonly Offered[];
  /** What a person should know before paying, if anything. */
  note?: string | null;
}

export type Offered = Pick<Item, "rowId" | "model" | "params" | "price">;

/** Finds the items. Throws EarlyExit if there are none. */
export type FindItems = (store: Store) => Promise<ItemRequest>;

/** The selected items of a run, by the cells of their rows. Throws EarlyExit if there is none. */
export function selectItems(run: Run, items: readonly Item[], selection: Selection): Item[] {
  if (isEverything(selection)) return [...items];
  const choice = new ItemChoice(run, selection);
  for (const item of items) choice.see(item);
  const chosen = choice.ids();
  return items.filter(({ id }) => chosen.has(id));
}

/** Selects items of a run one by one: what is kept of each until the last was seen is little. */
export class ItemChoice {
  private readonly matches: ReturnType<typeof matcherOf>;
  private readonly keys: KeyWatch;
  private readonly matching: (Selectable & Pick<Item, "id">)[] = [];

  constructor(
    private readonly run: Run,
    private readonly selection: Selection,
  ) {
    this.matches = matcherOf(selection);
    this.keys = new KeyWatch(selection);
  }

  /** `more` are columns besides the cells of the item's row. */
  see(item: Item, more: Readonly<Record<string, string>> = {}): void {
    const { number, name, failed, values } = selectableItem(item, more);
    this.keys.see(values);
    if (this.matches({ number, values }))
      this.matching.push({ id: item.id, number, name, failed, values: noValues });
  }

  /** The selected ones, in the order in which they were seen. Throws EarlyExit if there is none. */
  ids(): ReadonlySet<number> {
    const { run, selection } = this;
    for (const { key, near } of this.keys.unknown()) {
      const meant = near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
      throw new EarlyExit("usage", `--filter names "${key}", which no row of run ${run.id} has${meant}`);
    }
    const chosen = select(this.matching, { ...selection, filters: [], range: null });
    if (chosen.length === 0)
      throw new EarlyExit("usage", `no item of run ${run.id} is selected by ${selectionText(selection)}`);
    return new Set(chosen.map(({ id }) => id));
  }
}

const noValues: Selectable["values"] = new Map();

/** Items that a person named, each once: one item has several names, and an order is carried out once for each item. */
export function eachOnce(named: readonly Item[]): Item[] {
  return [...new Map(named.map((item) => [item.id, item])).values()];
}

/** The planned items of a run, and their price. Every process that continues the run submits them. */
export interface PlannedRest {
  items: number;
  credits: Credits;
}

const noRest: PlannedRest = { items: 0, credits: noCredits };

/** A cancelled run submits nothing but what is ordered. */
export async function plannedRest(store: Pick<Store, "waiting">, run: Run): Promise<PlannedRest> {
  if (run.state === "cancelled") return noRest;
  const groups = await store.waiting(run.id, { models: [], prices: [] });
  const items = groups.reduce((sum, group) => sum + group.items, 0);
  return { items, credits: sumOf(groups.map(({ credits }) => credits)) };
}

/** What a person agrees to before anything is paid. */
export interface Offer {
  /** The ordered items that cost something. */
  items: readonly Offered[];
  /** What they cost together. */
  credits: Credits;
  /** The other items that are submitted along with them. */
  rest: PlannedRest;
  note: string | null;
}

export type PriceConsent = (offer: Offer) => Promise<boolean>;

/**
 * The order with the price that the person agreed to, if it has one. An order without a price is asked about as well if
 * carrying it out submits other items. Throws EarlyExit if they decline.
 */
export async function agreedTo(
  { order, offered, note = null }: Pick<ItemRequest, "order" | "offered" | "note">,
  consent: PriceConsent,
  rest: PlannedRest = noRest,
): Promise<ItemOrder> {
  const isPriced = "agreed" in order;
  if (!isPriced && rest.items === 0) return order;
  const items = isPriced ? offered : [];
  const credits = sumOf(items.map(({ price }) => price));
  if (!(await consent({ items, credits, rest, note })))
    throw new EarlyExit("usage", "not confirmed; nothing was submitted");
  return isPriced ? { ...order, agreed: credits } : order;
}

/** Whether the service must be asked before an order can be applied. */
export function needsFacts(order: ItemOrder): boolean {
  return order.do === "adopt" || order.do === "redo";
}

/** Answers what an order depends on. */
export type ServiceLookup = Pick<OpenAccount, "service" | "models">;

/** Asks the service what the order depends on. Throws EarlyExit. */
export async function factsFor(order: ItemOrder, account: ServiceLookup): Promise<Facts> {
  if (order.do === "redo") return { models: await account.models() };
  if (order.do === "adopt") return { task: await taskOf(order.task, account) };
  return {};
}

export function taskOf(taskId: string, { service }: ServiceLookup): Promise<Task> {
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
    if (!(await this.hasPlace())) return;
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

  private async hasPlace(): Promise<boolean> {
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
export function isPassing(found: Facts | Error): boolean {
  const ends = found instanceof EarlyExit && (found.exit === "interrupted" || found.exit === "unfinished");
  return ends || found instanceof NoRequestsUntil;
}
