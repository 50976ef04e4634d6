import { groupText, priceGroup } from "../../core/identity.js";
import { type Credits, inCredits, showCredits } from "../../core/money.js";
import type { PlannedPrice } from "../../core/next/next.js";
import type { Item } from "../../core/ports/store.js";

/**
 * The first paid request of each model and params goes alone: what it is charged is compared with the price that was
 * planned; where its answer does not tell that, its task does. Nothing is bought that was planned for less than its
 * group is known to be charged, by this run or before it, until a person has agreed to the new price. So a surprise
 * costs its surplus once, however often a run is gone on with.
 */
export class Prices {
  /** Groups whose first item is on its way, or was charged what was planned. */
  private readonly groups = new Map<string, "tried" | "proven">();
  /** Their first item, where it was accepted without a word of what was charged: if anything tells it, its task does. */
  private readonly untold = new Map<string, number>();
  /** The highest charge of each group. */
  private readonly charges = new Map<string, Credits>();
  /** The prices at which items of the run were planned, by group. */
  private readonly planned = new Map<string, Set<Credits>>();
  private readonly below = new Map<string, readonly PlannedPrice[]>();
  private readonly surprises = new Map<string, string>();

  /** Items of the run were planned at this price; `charge` is the highest of their group that is known from before. */
  recall(item: PlannedPrice, charge: Credits | undefined): void {
    if (charge !== undefined) this.learn(item.group, charge);
    this.note(item);
  }

  /** Prices that must not be submitted at: below what their group is charged. */
  get stopped(): PlannedPrice[] {
    return [...this.below.values()].flat();
  }

  /** Whether an item was planned for less than its group is charged. */
  isBelow({ group, price }: PlannedPrice): boolean {
    return price < (this.charges.get(group) ?? price);
  }

  /** One line for each surprise of this run, and for each group that was known to be charged more than items of it that wait. */
  messages(waiting: readonly PlannedPrice[]): string[] {
    const known = waiting.filter((item) => this.isBelow(item) && !this.surprises.has(item.group));
    return [...this.surprises.values(), ...known.map((item) => this.knownText(item))];
  }

  /** The items that may be submitted now: all of proven groups, the first one of each other that is not being tried. */
  allowed<Planned extends PlannedPrice>(planned: readonly Planned[]): Planned[] {
    const first = new Set<string>();
    return planned.filter((item) => {
      const { group } = item;
      this.note(item);
      if (this.isBelow(item)) return false;
      const standing = this.groups.get(group);
      if (standing !== undefined) return standing === "proven";
      if (first.has(group)) return false;
      first.add(group);
      return true;
    });
  }

  /** An item is about to be submitted. */
  trying(item: Pick<Item, "model" | "params">): void {
    const group = priceGroup(item);
    if (!this.groups.has(group)) this.groups.set(group, "tried");
  }

  /**
   * It was accepted, at this charge where the service said one. Returns whether that is more than was known of its
   * group: only that is worth remembering.
   */
  charged(item: Priced, amount: Credits | null): boolean {
    const group = priceGroup(item);
    if (amount === null) {
      if (this.groups.get(group) === "tried") this.untold.set(group, item.id);
      return false;
    }
    if (amount > item.price) this.surprised(item, amount);
    else this.groups.set(group, "proven");
    return this.learn(group, amount);
  }

  /**
   * Its task is done, at this charge where that was said, or nobody waits for its end any more. Returns the same. What
   * an earlier process submitted proves nothing of what its group is charged now.
   */
  seen(item: Priced, amount: Credits | null): boolean {
    if (this.isUntold(item)) {
      this.untold.delete(priceGroup(item));
      this.groups.set(priceGroup(item), "proven");
    }
    const isNews = amount !== null && this.learn(priceGroup(item), amount);
    if (isNews && amount > item.price) this.surprised(item, amount);
    return isNews;
  }

  /** Its task failed, which says nothing of prices. */
  failed(item: Priced): void {
    if (!this.isUntold(item)) return;
    this.untold.delete(priceGroup(item));
    this.refused(item);
  }

  private isUntold(item: Priced): boolean {
    return this.untold.get(priceGroup(item)) === item.id;
  }

  private surprised(item: Priced, amount: Credits): void {
    const group = priceGroup(item);
    this.groups.delete(group);
    if (!this.surprises.has(group)) this.surprises.set(group, surpriseText(group, item, amount));
  }

  /** It was not accepted: the next one is the first again. */
  refused(item: Pick<Item, "model" | "params">): void {
    const group = priceGroup(item);
    if (this.groups.get(group) === "tried") this.groups.delete(group);
  }

  /** What was planned while the run is at work, such as a variant that is ordered, is noted when its turn comes. */
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
