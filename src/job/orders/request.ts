import { EarlyExit } from "../../core/exit.js";
import { type Credits, noCredits, sumOf } from "../../core/money.js";
import type { ItemOrder } from "../../core/ports/orders.js";
import type { Item, Run } from "../../core/ports/store.js";
import type { Selection } from "../../plan/plan.js";
import {
  isEverything,
  KeyWatch,
  matcherOf,
  type RowOfSheet,
  type Selectable,
  select,
  selectableItem,
  selectionText,
} from "../../plan/select.js";
import type { Store } from "../../store/workspace/workspace.js";
import { sheetOf, withVariants } from "../../workspace/takes/sheet-takes.js";

/** What a person wants to do with items, found and checked before anything is locked, requested or changed. */
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

/**
 * The selected items of a run, by the cells of all rows that they stand for. `what`
 * they all are, such as `held item`. Throws EarlyExit if there is none.
 */
export async function selectItems(
  store: Store,
  run: Run,
  items: readonly Item[],
  selection: Selection,
  what: string,
): Promise<Item[]> {
  if (isEverything(selection)) return [...items];
  const choice = new ItemChoice(run, selection);
  const variants = await store.variantsMax(run.jobId);
  const byKey = new Map(items.map((item) => [item.key, item]));
  const unseen = new Set(items);
  for await (const page of (await sheetOf(store, run))?.pages() ?? [])
    for (const row of page)
      for (const key of row.keys.flatMap((each) => withVariants(each, variants))) {
        const item = byKey.get(key);
        if (item === undefined) continue;
        choice.see(item, {}, row);
        unseen.delete(item);
      }
  for (const item of unseen) choice.see(item);
  const chosen = new Set([...choice.chosen(what)].map(({ id }) => id));
  return items.filter(({ id }) => chosen.has(id));
}

/** Selects items of a run in their rows one by one, and keeps little of each until the last was seen. */
export class ItemChoice {
  private readonly matches: ReturnType<typeof matcherOf>;
  private readonly keys: KeyWatch;
  private readonly matching: (Selectable & Chosen)[] = [];
  private seen = 0;

  constructor(
    private readonly run: Run,
    private readonly selection: Selection,
  ) {
    this.matches = matcherOf(selection);
    this.keys = new KeyWatch(selection);
  }

  /** `more` are columns besides the cells of the item's row. */
  see(item: Item, more: Readonly<Record<string, string>> = {}, row?: RowOfSheet): void {
    this.seen++;
    const { number, name, failed, values } = selectableItem(item, more, row);
    this.keys.see(values);
    if (this.matches({ number, values }))
      this.matching.push({ id: item.id, row: row?.number ?? null, number, name, failed, values: noValues });
  }

  /** The selected ones, in the order in which they were seen. Throws EarlyExit if there is none. `what` they all are. */
  chosen(what: string): readonly Chosen[] {
    const { run, selection } = this;
    if (this.seen === 0) throw new EarlyExit("usage", `run ${run.id} has no ${what} to select from`);
    for (const { key, near } of this.keys.unknown()) {
      const meant = near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
      throw new EarlyExit("usage", `--filter names "${key}", which no row of run ${run.id} has${meant}`);
    }
    const chosen = select(this.matching, { ...selection, filters: [], range: null });
    if (chosen.length === 0)
      throw new EarlyExit("usage", `no ${what} of run ${run.id} is selected by ${selectionText(selection)}`);
    return chosen;
  }
}

/** An item in one of its rows; null for the row that it was made for, where no sheet has it. */
export interface Chosen {
  id: number;
  row: number | null;
}

const noValues: Selectable["values"] = new Map();

/** Items that a person named, each once: one item has several names, and an order is carried out once for each item. */
export function eachOnce(named: readonly Item[]): Item[] {
  return [...new Map(named.map((item) => [item.id, item])).values()];
}

/**
 * What every process that continues a run submits: its planned items, and those that wait for outputs of others. With
 * the price of all of them.
 */
export interface PlannedRest {
  items: number;
  credits: Credits;
}

const noRest: PlannedRest = { items: 0, credits: noCredits };

/** A cancelled run submits nothing but what is ordered. With an order, items that wait for its items are made as well. */
export async function plannedRest(
  store: Pick<Store, "waiting" | "counts" | "blockedRest">,
  run: Run,
  order?: ItemOrder,
): Promise<PlannedRest> {
  if (run.state === "cancelled") return noRest;
  const groups = await store.waiting(run.id, { models: [], prices: [] });
  const { blocked } = await store.counts(run.id);
  // A variant takes the place of no item.
  const again = order === undefined || order.do === "redo" ? [] : order.items;
  const released = blocked === 0 ? noRest : await store.blockedRest(run.id, again);
  return {
    items: groups.reduce((sum, group) => sum + group.items, released.items),
    credits: sumOf([...groups, released].map(({ credits }) => credits)),
  };
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
