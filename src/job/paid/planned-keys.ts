import { itemKeys } from "../../core/identity.js";
import type { Run } from "../../core/ports/store.js";
import { contentsOf } from "../../plan/items.js";
import type { Plan } from "../../plan/plan.js";
import type { Draft } from "../../store/draft/draft.js";

/** An account: a user at a service. */
export interface Who {
  user: string;
  origin: string;
}

/** What a key that is on record somewhere is in a plan. */
export interface Planned {
  /** The key of the plan's item. */
  key: string;
  /** The account for which the item on record was made. */
  who: Who;
}

/**
 * The one comparison between what was paid for and what is planned. An item's key has the user, the service's address and
 * the params that were sent, so what was made for another user, at another address or under another catalogue is on
 * record under another key, and is the plan's item all the same.
 */
export class PlannedKeys {
  private readonly others = new Map<string, Planned>();

  constructor(
    { items, edition, otherParams }: Pick<Plan, "items" | "edition" | "otherParams">,
    private readonly draft: Pick<Draft, "holds">,
    private readonly who: Who,
    runs: readonly Pick<Run, "accountId" | "origin">[],
  ) {
    // A run that was rebuilt from the archive alone names nobody.
    const named = runs.flatMap(({ accountId: user, origin }) => (user === "" ? [] : [{ user, origin }]));
    const accounts = [...new Map([...named, who].map((each) => [JSON.stringify(each), each])).values()];
    if (accounts.length === 1 && Object.keys(otherParams).length === 0) return;
    const keys = accounts.map((each) => ({
      who: each,
      keyOf: itemKeys({ origin: each.origin, account: each.user, edition }),
    }));
    for (const item of items) {
      if (!item.due) continue;
      const { model, prompt, occurrence } = item;
      const inputs = contentsOf(item);
      for (const params of [item.params, ...(otherParams[item.key] ?? [])])
        for (const { who, keyOf } of keys)
          this.others.set(keyOf({ model, prompt, params, inputs, occurrence }), { key: item.key, who });
    }
  }

  /** What a key on record is in the plan; undefined if it is nothing of it. */
  find(key: string): Planned | undefined {
    return this.draft.holds(key) ? { key, who: this.who } : this.others.get(key);
  }

  /** The key of the plan's item, if what is on record was made for the plan's own account. */
  own(key: string): string | undefined {
    const found = this.find(key);
    return found?.who === this.who ? found.key : undefined;
  }
}
