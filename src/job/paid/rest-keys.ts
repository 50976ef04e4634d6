import { itemKeys } from "../../core/identity.js";
import type { Item, Run, Store } from "../../core/ports/store.js";
import { contentsOf } from "../../plan/items.js";
import type { OpenAccount } from "../../workspace/account.js";

/**
 * The keys that the items that a run has still to buy would have under another catalogue. A run that is continued reads no
 * sheet, so the params that were made in this workspace, or charged to this account, are compared with an item's: a param
 * that only the item has may have been left out if it is not of the row itself, and one that the item does not have was
 * perhaps left out of it.
 */
export async function restKeys(
  { accounts, accountId }: Pick<OpenAccount, "accounts" | "accountId">,
  store: Pick<Store, "items" | "priceGroups">,
  { id, origin, accountId: user, edition, options }: Run,
): Promise<Map<string, Item>> {
  const charged = (await accounts.highestCharges(accountId())).keys();
  const made = new Map<string, Map<string, string>[]>();
  for (const group of new Set([...(await store.priceGroups(null, edition)), ...charged])) {
    const [model, params] = JSON.parse(group) as [string, [string, string][]];
    made.set(model, [...(made.get(model) ?? []), new Map(params)]);
  }
  const keyOf = itemKeys({ origin, account: user, edition });
  const keys = new Map<string, Item>();
  for (const item of await store.items(id, ["planned", "blocked"])) {
    const leftOut = options.leftOut?.[item.model] ?? [];
    const given = new Set(item.cells.map(([column]) => column));
    for (const params of made.get(item.model) ?? []) {
      const isSame =
        Object.entries(item.params).every(([key, value]) =>
          params.has(key) ? params.get(key) === value : !given.has(`params.${key}`),
        ) && [...params.keys()].every((key) => item.params[key] !== undefined || leftOut.includes(key));
      if (isSame)
        keys.set(keyOf({ ...item, params: Object.fromEntries(params), inputs: contentsOf(item) }), item);
    }
  }
  return keys;
}
