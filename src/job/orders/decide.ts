import { EarlyExit } from "../../core/exit.js";
import { sumOf } from "../../core/money.js";
import type { Item, Run } from "../../core/ports/store.js";
import type { Selection } from "../../plan/plan.js";
import { isEverything } from "../../plan/select.js";
import type { Store } from "../../store/workspace/workspace.js";
import { count } from "../../text/amounts.js";
import { terminalText } from "../../text/terminal.js";
import { itemNamed } from "./item-named.js";
import { newestRunOf, variantsOf } from "./redo.js";
import { eachOnce, type FindItems, selectItems } from "./request.js";
import { type ItemName, placed } from "./review.js";

/** A person's decision about archived items: approve them, reject them, or reject them and make new variants. */
export type ApprovalChoice = "approve" | "reject" | "again";

/**
 * Which items: by name, in a review file, or all that wait for approval in the newest run that has any; a selection may
 * narrow these down.
 */
export interface DecidedItems {
  names: readonly ItemName[];
  all: boolean;
  selection: Selection;
  /** Paths of files start from here. */
  cwd: string;
}

/** An order that carries out a decision. */
export function decideItems(which: DecidedItems, decision: ApprovalChoice): FindItems {
  return async (store) => {
    const { run, items } = await decidedItems(store, which, decision);
    const ids = items.map(({ id }) => id);
    if (decision !== "again") return { run, offered: [], order: { do: decision, items: ids } };
    const agreed = sumOf(items.map(({ price }) => price));
    const offered = await variantsOf(store, run, items);
    return { run, offered, order: { do: "redo", items: ids, agreed, rejects: true } };
  };
}

async function decidedItems(
  store: Store,
  { names, all, selection, cwd }: DecidedItems,
  decision: ApprovalChoice,
): Promise<{ run: Run; items: Item[] }> {
  if (names.length > 0) {
    const items: Item[] = [];
    for (const name of names) {
      const item = await itemNamed(store, name, cwd);
      if (isBeside(name, item)) continue;
      mayBeDecided(item, decision, name);
      items.push(item);
    }
    if (items.length > 0) return { run: await newestRunOf(store, items), items: eachOnce(items) };
    throw new EarlyExit(
      "usage",
      `none of the ${count(names.length, "item")} waits for approval: their steps have no \`approve: true\`. Nothing was changed.`,
    );
  }
  if (!all && isEverything(selection))
    throw new EarlyExit(
      "usage",
      `name the items to ${decision === "approve" ? "approve" : "reject"}, add --all or --from FILE, or select some, such as with --filter id=cup*`,
    );
  for (const run of (await store.runs()).toReversed()) {
    const waiting = await store.awaitingApproval(run.id);
    if (waiting.length === 0) continue;
    const items = await Promise.all(waiting.map(({ id }) => store.item(id)));
    return { run, items: await selectItems(store, run, items, selection, "item that waits for approval") };
  }
  throw new EarlyExit("done", "nothing to decide: no item waits for approval");
}

/** In a gallery, files are picked whether or not their approval was asked for. */
function isBeside(name: ItemName, { approval }: Item): boolean {
  return typeof name !== "string" && approval === null && name.decision === "pick";
}

/**
 * Throws EarlyExit for an item that is not archived, or that is approved although it needs no approval. Whatever is archived can be
 * rejected.
 */
export function mayBeDecided(
  { rowId, state, approval }: Item,
  decision: ApprovalChoice,
  name: ItemName = rowId,
): void {
  if (approval === null && decision === "approve")
    throw new EarlyExit(
      "usage",
      placed(
        name,
        `${terminalText(rowId)} needs no approval: its step has no \`approve: true\`. Nothing was changed.`,
      ),
    );
  if (state === "archived") return;
  throw new EarlyExit(
    "usage",
    placed(
      name,
      `${terminalText(rowId)} is ${state}, and only archived items can be approved or rejected. Nothing was changed.`,
    ),
  );
}
