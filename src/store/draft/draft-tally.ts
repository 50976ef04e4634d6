import { type Credits, plus } from "../../core/money.js";
import type { DraftItem, GroupSum, Totals } from "../../core/ports/draft.js";

/**
 * What the records come to while they go in, when each item is new and every chosen one due. To ask the database for it
 * afterwards is a look at every record again; that is left to sheets of which some part is selected or known already.
 */
export class Tally {
  private readonly sums = new Map<number, GroupSum>();
  /** The records are still as they went in. */
  private holds = true;

  add({ kind: { group, price } }: Pick<DraftItem, "kind">): void {
    const sum = this.sums.get(group);
    if (sum === undefined) this.sums.set(group, { group, items: 1, due: 1, price, credits: price });
    else {
      sum.items++;
      sum.due++;
      sum.price = Math.max(sum.price, price) as Credits;
      sum.credits = plus(sum.credits, price);
    }
  }

  /** Something becomes of records that went in. */
  spoil(): void {
    this.holds = false;
  }

  clear(): void {
    this.sums.clear();
    this.holds = true;
  }

  /** Null when the database has to be asked. */
  totals(): Totals | null {
    if (!this.holds) return null;
    const groups = [...this.sums.values()].map((sum) => ({ ...sum }));
    const items = groups.reduce((sum, group) => sum + group.items, 0);
    return { items, due: items, groups, standings: items === 0 ? {} : { new: items } };
  }
}
