import type { Model } from "../api/records.js";
import { priceGroup } from "../core/identity.js";
import { listPrice } from "../core/list-price.js";
import { type Credits, inCredits, minus, noCredits, plus, showCredits, sumOf } from "../core/money.js";
import type { GroupSum, ItemKind, Ordered } from "../core/ports/draft.js";
import type { Draft } from "../store/draft/draft.js";
import { count } from "../text/amounts.js";
import type { Finding, Fit, ModelCost, Money, PlanInput, SpendingCaps, SpentAgainstCaps } from "./plan.js";

/** Items that are expected to cost the same and to take equally long. */
export interface PriceGroup {
  model: string;
  category: string;
  /** See `priceGroup`. */
  name: string;
  /** What one of them costs by the service's list. */
  listed: Credits;
}

/** A parameter that differs in each row makes as many groups as rows; groups beyond this many are counted together. */
const groupsMax = 1_000;
const keptMax = 1_000;

/** The prices of one plan's items. */
export class PlanPrices {
  private readonly groups: PriceGroup[] = [];
  /** By model and params as written. */
  private readonly known = new Map<string, ItemKind>();
  /** By the object of params, because rows share it: then the text is made only once. */
  private readonly shared = new Map<ItemKind["params"], ItemKind>();
  private readonly numbers = new Map<string, number>();

  /** `charges` are the highest charges seen, by group, which are more reliable than the list price. */
  constructor(private readonly charges: ReadonlyMap<string, Credits>) {}

  /** The kind of an item, with what it costs and its group. */
  of(model: Model, params: ItemKind["params"]): ItemKind {
    const shared = this.shared.get(params);
    if (shared?.model === model.model_key) return shared;
    const kind = this.asWritten(model, params);
    if (this.shared.size < keptMax) this.shared.set(params, kind);
    return kind;
  }

  private asWritten(model: Model, params: ItemKind["params"]): ItemKind {
    const written = model.model_key + JSON.stringify(params);
    const known = this.known.get(written);
    if (known !== undefined) return known;
    const name = priceGroup({ model: model.model_key, params });
    const listed = listPrice(model, params);
    const kind: ItemKind = {
      model: model.model_key,
      category: model.category,
      params,
      price: this.charges.get(name) ?? listed,
      group: this.numbers.get(name) ?? this.begin(model, name, listed),
    };
    if (this.known.size < keptMax) this.known.set(written, kind);
    return kind;
  }

  groupOf(number: number): PriceGroup {
    const group = this.groups[number];
    if (group === undefined) throw new Error(`no price group ${number} in this plan`);
    return group;
  }

  private begin({ model_key: model, category }: Model, name: string, listed: Credits): number {
    if (this.groups.length >= groupsMax) {
      const other = this.groups.findIndex((group) => group.model === model);
      if (other >= 0) return other;
    }
    this.groups.push({ model, category, name, listed });
    this.numbers.set(name, this.groups.length - 1);
    return this.groups.length - 1;
  }
}

export type Sum = GroupSum & PriceGroup;

/** How many items credits cover. */
export interface Coverage {
  fit: Fit;
  /** The last covered item. */
  last: Ordered | null;
  /** How many items of each price group are covered. */
  made: ReadonlyMap<number, number>;
}

/** How many items the caps of models alone cover, all caps, and all caps with the balance. */
export interface CoverageByCap {
  models: Coverage;
  caps: Coverage;
  all: Coverage;
}

export function coverageByCap(draft: Draft, sums: readonly Sum[], budget: Budget): CoverageByCap {
  const unlimited = Number.POSITIVE_INFINITY as Credits;
  const room = tightest(budget)?.room ?? unlimited;
  return {
    models: coverageOf(draft, sums, budget, unlimited),
    caps: coverageOf(draft, sums, budget, room),
    all: coverageOf(draft, sums, budget, Math.min(budget.balance ?? unlimited, room) as Credits),
  };
}

/**
 * Covers items as the run will make them. A model at its own cap is left out and the others continue. Otherwise the
 * coverage ends at the first item that does not fit: a cheaper one does not jump the queue.
 */
function coverageOf(draft: Draft, sums: readonly Sum[], { caps }: Budget, affordable: Credits): Coverage {
  const rooms = modelBudgets(caps);
  const needed = sumOf(sums.map((group) => group.credits));
  const modelOf = new Map(sums.map(({ group, model }) => [group, model]));
  const made = new Map<number, number>();
  const reached = { items: 0, credits: noCredits };
  let last: Ordered | null = null;
  if (rooms.size === 0 && needed <= affordable) {
    for (const { group, due } of sums) made.set(group, due);
    reached.items = sums.reduce((sum, { due }) => sum + due, 0);
    reached.credits = needed;
    last = draft.lastDue();
  } else {
    for (const item of draft.dueInOrder()) {
      const model = modelOf.get(item.group) ?? "";
      const room = rooms.get(model);
      if (room !== undefined) {
        const fits = item.price <= room;
        rooms.set(model, fits ? minus(room, item.price) : noCredits);
        if (!fits) continue;
      }
      const sum = plus(reached.credits, item.price);
      if (sum > affordable) break;
      reached.items++;
      reached.credits = sum;
      made.set(item.group, (made.get(item.group) ?? 0) + 1);
      last = item;
    }
  }
  const place = { rowNumber: last?.rowNumber ?? null, rowId: last?.rowId ?? null };
  return { fit: { ...reached, ...place }, last, made };
}

/** What a run will make: the items that balance and caps cover, or all due items if they cover none. */
export function paidFor(sums: readonly Sum[], { fit, made }: Coverage): Sum[] {
  return fit.items === 0 ? [...sums] : sums.map((sum) => ({ ...sum, due: made.get(sum.group) ?? 0 }));
}

export function moneyOf(
  sums: readonly Sum[],
  { caps, balance }: Budget,
  { within: covered, inDoubt, ordered }: Pick<Money, "within" | "inDoubt"> & { ordered: Credits },
): Money {
  const needed = plus(sumOf(sums.map((group) => group.credits)), ordered);
  const { most = null, spent = noCredits } = caps.total ?? {};
  const room = tightest({ caps, balance })?.room ?? (Number.POSITIVE_INFINITY as Credits);
  const within = Math.max(covered, Math.min(plus(covered, ordered), room)) as Credits;
  const after = balance === null ? null : minus(balance, within);
  return { needed, within, inDoubt, balance, after, maxCredits: most, spent };
}

/** One line for each model, in the order in which the manifest first names them. */
export function modelCosts(sums: readonly Sum[], { charges }: Pick<PlanInput, "charges">): ModelCost[] {
  const costs = new Map<string, ModelCost>();
  for (const { model, category, name, listed, price, items, due, credits: paid } of sums) {
    const none = {
      model,
      category,
      items: 0,
      due: 0,
      price,
      credits: noCredits,
      base: listed,
      charged: null,
    };
    const cost: ModelCost = costs.get(model) ?? none;
    costs.set(model, cost);
    cost.charged = widened(cost.charged, charges?.get(name));
    // Params may change a price: the highest is shown, the sum is exact.
    cost.price = Math.max(cost.price, price) as Credits;
    cost.base = Math.max(cost.base, listed) as Credits;
    cost.items += items;
    cost.due += due;
    cost.credits = plus(cost.credits, paid);
  }
  return [...costs.values()];
}

function widened(charged: ModelCost["charged"], one: Credits | undefined): ModelCost["charged"] {
  if (one === undefined) return charged;
  const { least, most } = charged ?? { least: one, most: one };
  return { least: Math.min(least, one) as Credits, most: Math.max(most, one) as Credits };
}

/** The available credits. */
export interface Budget {
  caps: SpendingCaps;
  /** Null if the service does not report it: then the service decides, and --keep-credits has no effect. */
  balance: Credits | null;
}

export const noCaps: SpendingCaps = { total: null, models: new Map(), keep: null, daily: null };

/** A cap of the whole run, by its flag, and its remaining budget. */
interface Room {
  cap: "max-credits" | "max-credits-per-day" | "keep-credits";
  room: Credits;
}

/** The cap with the least remaining budget; null if there is none. */
export function tightest({ caps, balance }: Budget): Room | null {
  const rooms: Room[] = [];
  if (caps.total) rooms.push({ cap: "max-credits", room: roomOf(caps.total) });
  if (caps.daily) rooms.push({ cap: "max-credits-per-day", room: roomOf(caps.daily) });
  if (caps.keep !== null)
    rooms.push({ cap: "keep-credits", room: Math.max(0, minus(balance ?? noCredits, caps.keep)) as Credits });
  const [least] = rooms.toSorted((a, b) => a.room - b.room);
  return least ?? null;
}

function roomOf({ most, spent }: SpentAgainstCaps): Credits {
  return Math.max(0, minus(most, spent)) as Credits;
}

/** The remaining budget of each model with a cap. */
function modelBudgets({ models }: SpendingCaps): Map<string, Credits> {
  return new Map([...models].map(([model, spending]) => [model, roomOf(spending)]));
}

/** A line for each cap that leaves items undone. */
export function capWarnings(
  sums: readonly Sum[],
  budget: Budget,
  { models, caps }: CoverageByCap,
): Finding[] {
  const found = tightest(budget);
  const undone = models.fit.items - caps.fit.items;
  if (found === null || undone === 0) return modelWarnings(sums, budget, models.made);
  const needed = sumOf(sums.map((sum) => sum.credits));
  const today = found.cap === "max-credits-per-day" ? " today" : "";
  const message = `The run needs ${inCredits(needed)} and --${found.cap} leaves ${showCredits(found.room)}${today}: ${coverageText(caps.fit)}; ${count(undone, "item")} will not be made.`;
  return [
    { kind: "over_cap", message, ...found, needed, undone, coverage: caps.fit },
    ...modelWarnings(sums, budget, models.made),
  ];
}

function modelWarnings(sums: readonly Sum[], { caps }: Budget, made: ReadonlyMap<number, number>): Finding[] {
  return [...modelBudgets(caps)].flatMap(([model, room]): Finding[] => {
    const own = sums.filter((sum) => sum.model === model);
    const needed = sumOf(own.map((sum) => sum.credits));
    if (needed <= room) return [];
    const due = own.reduce((count, sum) => count + sum.due, 0);
    const undone = due - own.reduce((count, { group }) => count + (made.get(group) ?? 0), 0);
    const message = `${model} needs ${inCredits(needed)} and --max-credits-per-model leaves ${showCredits(room)}: ${undone} of its ${count(due, "item")} will not be made.`;
    return [{ kind: "over_model_cap", message, model, needed, room, undone }];
  });
}

/** What credits cover, as the rest of a sentence. */
export function coverageText(fit: Fit): string {
  if (fit.rowNumber === null) return "it does not cover the first item";
  return `it covers ${count(fit.items, "item")}, through row ${fit.rowNumber} (${fit.rowId})`;
}
