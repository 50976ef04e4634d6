import { itemKeys } from "../../core/identity.js";
import type { Item, Run } from "../../core/ports/store.js";
import { contentsOf } from "../../plan/items.js";
import type { Store } from "../../store/workspace/workspace.js";
import type { OpenAccount } from "../../workspace/account.js";

/** The params that were made in this workspace, or charged to this account, by model. */
export type ParamsByModel = ReadonlyMap<string, readonly ReadonlyMap<string, string>[]>;

export async function madeParams(
  { accounts, accountId }: Pick<OpenAccount, "accounts" | "accountId">,
  store: Pick<Store, "priceGroups">,
  { edition }: Run,
): Promise<ParamsByModel> {
  const charged = (await accounts.highestCharges(accountId())).keys();
  const made = new Map<string, Map<string, string>[]>();
  for (const group of new Set([...(await store.priceGroups(null, edition)), ...charged])) {
    const [model, params] = JSON.parse(group) as [string, [string, string][]];
    const known = made.get(model);
    if (known === undefined) made.set(model, [new Map(params)]);
    else known.push(new Map(params));
  }
  return made;
}

/** More sets of params of a model than these are not compared with each other. */
const comparedMax = 100;

/**
 * Whether an item with some of these params could have another key under another catalogue. Without one, the items of a run,
 * which may be a million, need not be read.
 */
export function mayHaveOtherKeys(made: ParamsByModel, leftOut: Run["options"]["leftOut"] = {}): boolean {
  return [...made].some(
    ([model, all]) =>
      all.length > comparedMax ||
      all.some((own) => all.some((other) => own !== other && isLike(own, other, leftOut[model] ?? []))),
  );
}

function isLike(
  own: ReadonlyMap<string, string>,
  other: ReadonlyMap<string, string>,
  leftOut: readonly string[],
): boolean {
  return (
    [...own].every(([key, value]) => !other.has(key) || other.get(key) === value) &&
    [...other.keys()].every((key) => own.has(key) || leftOut.includes(key))
  );
}

/**
 * The keys that the items that a run has still to buy would have under another catalogue. A run that is continued reads no
 * sheet, so the params that were made in this workspace, or charged to this account, are compared with an item's: a param
 * that only the item has may have been left out if it is not of the row itself, and one that the item does not have was
 * perhaps left out of it.
 */
export async function restKeys(
  store: Pick<Store, "items">,
  { id, origin, accountId: user, edition, options }: Run,
  made: ParamsByModel,
): Promise<Map<string, Item>> {
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
