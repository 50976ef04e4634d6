import type { Model } from "../api/records.js";
import { priceGroup } from "../core/identity.js";
import { type Credits, credits } from "../core/money.js";
import type { ItemKind } from "../core/ports/draft.js";

/** Items that are expected to cost the same and to take as long. */
export interface PriceGroup {
  model: string;
  category: string;
  /** As core names it. */
  name: string;
}

/** A parameter that is another one in each row makes as many groups as rows; more than these are counted together. */
const groupsMax = 1_000;
const keptMax = 1_000;

/** The prices of one plan's items. */
export class PlanPrices {
  private readonly groups: PriceGroup[] = [];
  /** By the params' own object, which rows share that say the same. */
  private readonly known = new Map<object, ItemKind[]>();
  /** By model and params as they are written, where rows that say the same do not share an object. */
  private readonly written = new Map<string, ItemKind>();
  private readonly numbers = new Map<string, number>();

  /** `charges` are the highest charges seen, by group: what was really charged says more than the list. */
  constructor(private readonly charges: ReadonlyMap<string, Credits>) {}

  /** The kind of an item, with what it costs and its group. */
  of(model: Model, params: ItemKind["params"]): ItemKind {
    const known = this.known.get(params);
    for (const kind of known ?? []) if (kind.model === model.model_key) return kind;
    const written = model.model_key + JSON.stringify(params);
    const alike = this.written.get(written);
    if (alike !== undefined) return alike;
    const name = priceGroup({ model: model.model_key, params });
    const kind: ItemKind = {
      model: model.model_key,
      category: model.category,
      params,
      price: this.charges.get(name) ?? credits(model.credits_cost),
      group: this.numbers.get(name) ?? this.begin(model, name),
    };
    if (this.written.size < keptMax) {
      this.written.set(written, kind);
      this.known.set(params, [...(known ?? []), kind]);
    }
    return kind;
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
