import { EarlyExit } from "../core/exit.js";
import { variantKey } from "../core/identity.js";
import { credits } from "../core/money.js";
import type { Item, NewItem, Run, Store } from "../core/store.js";
import { isEverything, type Selection } from "../plan/select.js";
import { type Continuation, newestRun } from "./continue-job.js";
import { itemNamed } from "./item-named.js";
import type { Hold } from "./open.js";
import { agreed, type PriceConsent } from "./retry.js";
import { selectItems } from "./select-items.js";

/**
 * A redo makes a new variant of each item beside the old one: same request, today's price, a name ending in `-v2`. The
 * items are named, or selected among those of the newest run, or both.
 */
export function redoItems(
  names: readonly string[],
  selection: Selection,
  consent: PriceConsent,
): Continuation {
  let items: Item[] = [];
  return {
    async choose(store) {
      if (names.length === 0) {
        const run = await newestRun(undefined)(store);
        items = selectItems(run, await redoable(store, run, selection), selection);
        return run;
      }
      const named = await Promise.all(names.map((name) => itemNamed(store, name)));
      const run = await newestRunOf(store, named);
      items = selectItems(run, named, selection);
      return run;
    },
    async change(hold, run) {
      const variants = await variantsOf(hold, run, items);
      await agreed(consent, variants);
      const started = await hold.store.startRun(run.jobId, run);
      await hold.store.add(started.id, variants);
      // The list of models was one more request.
      return { ...started, requests: started.requests + 1 };
    },
  };
}

/** What a selection is made from: what people can have seen, or else what failed. */
async function redoable(store: Store, run: Run, selection: Selection): Promise<Item[]> {
  if (isEverything(selection)) {
    throw new EarlyExit("usage", "name the items to redo, or select some, such as with --filter id=cup*");
  }
  const wanted = selection.onlyFailed ? "failed" : "archived";
  return (await store.items(run.id)).filter(({ state, variant }) => state === wanted && variant === 1);
}

async function newestRunOf(store: Store, items: readonly Item[]): Promise<Run> {
  const [first] = items;
  const other = items.find((item) => item.jobId !== first?.jobId || item.edition !== first?.edition);
  if (other) {
    throw new EarlyExit(
      "usage",
      `${other.rowId} belongs to another job or edition than ${first?.rowId}; redo them one after the other`,
    );
  }
  const run = (await store.runs()).findLast(
    (each) => each.jobId === first?.jobId && each.edition === first.edition,
  );
  if (!run) throw new Error("an item without a run of its job and edition");
  return run;
}

async function variantsOf({ account, store }: Hold, run: Run, items: readonly Item[]): Promise<NewItem[]> {
  const { models } = await account.models();
  const prices = new Map(models.map((model) => [model.model_key, credits(model.credits_cost)]));
  const siblings: NewItem[] = (await store.itemsOf(run.jobName)).filter(
    (item) => item.edition === run.edition,
  );
  const made: NewItem[] = [];
  for (const item of items) {
    const price = prices.get(item.model);
    if (price === undefined) {
      throw new EarlyExit("usage", `${item.rowId}: the service does not offer ${item.model} any more`);
    }
    const original = originalOf(item, siblings);
    const variant = 1 + Math.max(...variantsSoFar(original, [...siblings, ...made]));
    made.push({
      ...requestOf(item),
      key: variantKey(original.key, variant),
      variant,
      rowId: `${original.rowId}-v${variant}`,
      name: `${original.name}-v${variant}`,
      price,
    });
  }
  return made;
}

function requestOf(item: Item): Omit<NewItem, "key" | "variant" | "rowId" | "name" | "price"> {
  const { edition, occurrence, position, priority, rowNumber, cells } = item;
  const { model, category, prompt, params, inputs } = item;
  return {
    edition,
    occurrence,
    position,
    priority,
    rowNumber,
    cells,
    model,
    category,
    prompt,
    params,
    inputs,
  };
}

/** The row's own item, of which `item` may be a variant. */
function originalOf(item: Item, siblings: readonly NewItem[]): NewItem {
  const known = (each: NewItem) => each.variant === 1 && variantKey(each.key, item.variant) === item.key;
  return item.variant === 1 ? item : (siblings.find(known) ?? item);
}

function variantsSoFar(original: NewItem, siblings: readonly NewItem[]): number[] {
  const keys = new Set(siblings.map((each) => each.key));
  const variants = [1];
  for (let variant = 2; keys.has(variantKey(original.key, variant)); variant++) variants.push(variant);
  return variants;
}
