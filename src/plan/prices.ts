import type { Model } from "../api/records.js";
import { type Credits, credits } from "../core/money.js";
import { priceGroup } from "../core/price.js";

/** What an item costs, and the group of those that are expected to cost the same and to take as long. */
export interface Price {
  price: Credits;
  /** A number for the group. */
  group: number;
}

export interface PriceGroup {
  model: string;
  category: string;
  /** As core names it. */
  name: string;
}

/** A parameter that is another one in each row makes as many groups as rows; more than these are counted together. */
const groupsMax = 1_000;

/** The prices of one plan's items. */
export class Prices {
  private readonly groups: PriceGroup[] = [];
  /** By model and params as they are written: nearly all rows are like some row before them. */
  private readonly known = new Map<string, Price>();
  private readonly numbers = new Map<string, number>();

  /** `charges` are the highest charges seen, by group: what was really charged says more than the list. */
  constructor(private readonly charges: ReadonlyMap<string, Credits>) {}

  of(model: Model, params: Readonly<Record<string, string>>): Price {
    const written = model.model_key + JSON.stringify(params);
    const known = this.known.get(written);
    if (known) return known;
    const name = priceGroup({ model: model.model_key, params });
    const price = this.charges.get(name) ?? credits(model.credits_cost);
    const found = { price, group: this.numbers.get(name) ?? this.begin(model, name) };
    if (this.known.size < groupsMax) this.known.set(written, found);
    return found;
  }

  /** The group of that number. */
  groupOf(number: number): PriceGroup {
    const group = this.groups[number];
    if (group === undefined) throw new Error(`no price group ${number} in this plan`);
    return group;
  }

  private begin({ model_key: model, category }: Model, name: string): number {
    if (this.groups.length >= groupsMax) {
      const other = this.groups.findIndex((group) => group.model === model);
      if (other >= 0) return other;
    }
    this.groups.push({ model, category, name });
    this.numbers.set(name, this.groups.length - 1);
    return this.groups.length - 1;
  }
}
