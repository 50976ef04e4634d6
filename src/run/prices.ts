import { type Credits, showCredits } from "../core/money.js";
import { priceGroup } from "../core/price.js";
import type { Item } from "../core/store.js";

type Standing = "tried" | "proven" | { stopped: string };

/**
 * The first paid request of each model and params goes alone: what it is charged is compared with the price that was
 * planned, and a higher one stops its group until a new plan has shown it. So a surprise costs its surplus once.
 */
export class Prices {
  private readonly groups = new Map<string, Standing>();
  private stoppedGroups: readonly string[] = [];
  private readonly highest = new Map<string, Credits>();

  /** Groups that must not be submitted in this run. */
  get stopped(): readonly string[] {
    return this.stoppedGroups;
  }

  /** One line for each stopped group. */
  get messages(): string[] {
    return [...this.groups.values()].flatMap((standing) =>
      typeof standing === "object" ? [standing.stopped] : [],
    );
  }

  /** The items that may be submitted now: all of proven groups, the first one of each other that is not being tried. */
  allowed<Planned extends { group: string }>(planned: readonly Planned[]): Planned[] {
    const first = new Set<string>();
    return planned.filter(({ group }) => {
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

  /** It was accepted, at this charge where the service said one. */
  charged(item: Pick<Item, "model" | "params" | "price" | "rowId">, amount: Credits | null): void {
    const group = priceGroup(item);
    if (typeof this.groups.get(group) === "object") return;
    const dearer = amount !== null && amount > item.price;
    this.groups.set(group, dearer ? { stopped: surprise(item, amount) } : "proven");
    if (dearer) this.stoppedGroups = [...this.stoppedGroups, group];
  }

  /** Notes what an item was charged. Whether that is more than all of its group were in this run: only that is worth remembering. */
  noteHighest(item: Pick<Item, "model" | "params">, amount: Credits): boolean {
    const group = priceGroup(item);
    const highest = this.highest.get(group);
    if (highest !== undefined && amount <= highest) return false;
    this.highest.set(group, amount);
    return true;
  }

  /** It was not accepted: the next one is the first again. */
  refused(item: Pick<Item, "model" | "params">): void {
    const group = priceGroup(item);
    if (this.groups.get(group) === "tried") this.groups.delete(group);
  }
}

function surprise(item: Pick<Item, "model" | "params" | "price" | "rowId">, amount: Credits): string {
  const params = Object.entries(item.params).map(([key, value]) => `${key}=${value}`);
  const what = [item.model, ...params].join(" ");
  return `${what} was planned at ${showCredits(item.price)} credits and charged ${showCredits(amount)} (${item.rowId}); its other items wait: run again to see the new price`;
}
