import { groupText, priceGroup } from "../../core/identity.js";
import { type Credits, inCredits, showCredits } from "../../core/money.js";
import type { PlannedPrice } from "../../core/next/next.js";
import type { Item } from "../../core/ports/store.js";

/**
 * The first paid request of each model and params goes alone, and its charge is compared with the planned price. The
 * charge is in its answer, or else in its task. Nothing is bought that was planned for less than its group is known to
 * be charged, in this run or earlier, until a person has agreed to the new price. So a surprise costs its surplus once,
 * however often a run is resumed.
 */
export class Prices {
  /** Groups whose first item has been submitted, or was charged as planned. */
  private readonly groups = new Map<string, "tried" | "proven">();
  /** Their first item, if the answer did not state its charge: its task may. */
  private readonly unreported = new Map<string, number>();
  /** The highest charge of each group. */
  private readonly charges = new Map<string, Credits>();
  /** The prices at which items of the run were planned, by group. */
  private readonly planned = new Map<string, Set<Credits>>();
  private readonly below = new Map<string, readonly PlannedPrice[]>();
  private readonly surprises = new Map<string, string>();

  /** Items of the run were planned at this price; `charge` is the highest charge of their group so far. */
  recall(item: PlannedPrice, charge: Credits | undefined): void {
    if (charge !== undefined) this.learn(item.group, charge);
    this.note(item);
  }

  /** Prices at which nothing may be submitted, because their group is charged more. */
  get stopped(): PlannedPrice[] {
    return [...this.below.values()].flat();
  }

  /** Whether an item was planned for less than its group is charged. */
  isBelow({ group, price }: PlannedPrice): boolean {
    return price < (this.charges.get(group) ?? price);
  }

  /**
   * One line for each surprise of this run, and for each group whose waiting items were planned below a known charge.
   */
  messages(waiting: readonly PlannedPrice[]): string[] {
    const known = waiting.filter((item) => this.isBelow(item) && !this.surprises.has(item.group));
    return [...this.surprises.values(), ...known.map((item) => this.knownText(item))];
  }

  /**
   * The items that may be submitted now: all of proven groups, and the first of each other group that is not being
   * tried.
   */
  allowed<Planned extends PlannedPrice>(planned: readonly Planned[]): Planned[] {
    const first = new Set<string>();
    return planned.filter((item) => {
      const { group } = item;
      this.note(item);
      if (this.isBelow(item)) return false;
      const status = this.groups.get(group);
      if (status !== undefined) return status === "proven";
      if (first.has(group)) return false;
      first.add(group);
      return true;
    });
  }

  /**
   * An item is about to be submitted. False if it has to wait after all: its inputs took time, and meanwhile another item
   * of its group became the first, or the group was charged more than was planned.
   */
  trying(item: Priced): boolean {
    if (!this.mayTry(item)) return false;
    const group = priceGroup(item);
    if (!this.groups.has(group)) this.groups.set(group, "tried");
    return true;
  }

  /** Whether `trying` would be true. */
  mayTry(item: Priced): boolean {
    const group = priceGroup(item);
    return this.groups.get(group) !== "tried" && !this.isBelow({ group, price: item.price });
  }

  /**
   * An item was accepted, at this charge if the service stated one. Returns whether that is more than was known of its
   * group: only then is it worth storing.
   */
  charged(item: Priced, amount: Credits | null): boolean {
    const group = priceGroup(item);
    if (amount === null) {
      if (this.groups.get(group) === "tried") this.unreported.set(group, item.id);
      return false;
    }
    if (amount > item.price) this.surprised(item, amount);
    else this.groups.set(group, "proven");
    return this.learn(group, amount);
  }

  /**
   * An item's task is done, at this charge if the service stated one, or the run no longer waits for its end. Returns
   * the same as `charged`. Items that an earlier process submitted prove nothing about the price now.
   */
  seen(item: Priced, amount: Credits | null): boolean {
    if (this.isUnreported(item)) {
      this.unreported.delete(priceGroup(item));
      this.groups.set(priceGroup(item), "proven");
    }
    const isNews = amount !== null && this.learn(priceGroup(item), amount);
    if (isNews && amount > item.price) this.surprised(item, amount);
    return isNews;
  }

  /** An item's task failed, which says nothing about prices. */
  failed(item: Priced): void {
    if (!this.isUnreported(item)) return;
    this.unreported.delete(priceGroup(item));
    this.refused(item);
  }

  private isUnreported(item: Priced): boolean {
    return this.unreported.get(priceGroup(item)) === item.id;
  }

  private surprised(item: Priced, amount: Credits): void {
    const group = priceGroup(item);
    this.groups.delete(group);
    if (!this.surprises.has(group)) this.surprises.set(group, surpriseText(group, item, amount));
  }

  /** An item was not accepted: the next of its group is the first again. */
  refused(item: Pick<Item, "model" | "params">): void {
    const group = priceGroup(item);
    if (this.groups.get(group) === "tried") this.groups.delete(group);
  }

  /** Items that are added during the run, such as variants, are noted when their turn comes. */
  private note({ group, price }: PlannedPrice): void {
    const prices = this.planned.get(group) ?? new Set();
    if (prices.has(price)) return;
    this.planned.set(group, prices.add(price));
    this.compare(group);
  }

  private learn(group: string, charge: Credits): boolean {
    const known = this.charges.get(group);
    if (known !== undefined && charge <= known) return false;
    this.charges.set(group, charge);
    this.compare(group);
    return true;
  }

  private compare(group: string): void {
    const items = [...(this.planned.get(group) ?? [])].map((price) => ({ group, price }));
    const below = items.filter((item) => this.isBelow(item));
    if (below.length > 0) this.below.set(group, below);
  }

  private knownText({ group, price }: PlannedPrice): string {
    const charge = showCredits(this.charges.get(group) ?? price);
    return `${groupText(group)} is planned at ${inCredits(price)} and was charged ${charge} before; ${newPrice}`;
  }
}

type Priced = Pick<Item, "id" | "model" | "params" | "price" | "rowId">;

const newPrice = "its items wait: run the manifest again to see the new price";

function surpriseText(
  group: string,
  { price, rowId }: Pick<Item, "price" | "rowId">,
  amount: Credits,
): string {
  return `${groupText(group)} was planned at ${inCredits(price)} and charged ${showCredits(amount)} (${rowId}); ${newPrice}`;
}
