import { EarlyExit } from "../../core/exit.js";
import { plus } from "../../core/money.js";
import type { Item, Run, Store } from "../../core/ports/store.js";
import { openSource } from "../../manifest/read.js";
import type { Selection } from "../../plan/plan.js";
import { isEverything } from "../../plan/select.js";
import { count } from "../../text/amounts.js";
import { newestRunOf, variantsOf } from "./redo.js";
import { type FindItems, selectItems } from "./request.js";
import { itemNamed } from "./resolve.js";

/** A person's decision about archived items: approve them, reject them, or reject them and make new variants. */
export type ApprovalChoice = "approve" | "reject" | "again";

/** Which items: by name, in a review file, or all that wait in the newest run that has any, of which a selection may choose. */
export interface DecidedItems {
  names: readonly string[];
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
    const agreed = plus(...items.map(({ price }) => price));
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
    for (const name of names) items.push(await itemNamed(store, name, cwd));
    for (const item of items) mustBeAsked(item);
    return { run: await newestRunOf(store, items), items };
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
    return { run, items: selectItems(run, items, selection) };
  }
  throw new EarlyExit("done", "nothing to decide: no item waits for approval");
}

/** Throws EarlyExit for an item whose approval nobody asked for, or which is not archived. */
export function mustBeAsked({ rowId, state, approval }: Item): void {
  if (approval === null)
    throw new EarlyExit(
      "usage",
      `${rowId} needs no approval: its step has no \`approve: true\`. Nothing was changed.`,
    );
  if (state === "archived") return;
  throw new EarlyExit(
    "usage",
    `${rowId} is ${state}, and only archived items can be approved or rejected. Nothing was changed.`,
  );
}

/** What a review file says of an item. `pick` is what a gallery writes for an item that was chosen. */
const meanings: Readonly<Record<string, ApprovalChoice>> = {
  approve: "approve",
  pick: "approve",
  reject: "reject",
  redo: "again",
};

/**
 * The names of the items that a review file has for these decisions: a sheet with the columns `id` and `decision`. Throws
 * EarlyExit if there is none of them, or the file cannot be read.
 */
export async function reviewedItems(file: string, decisions: readonly ApprovalChoice[]): Promise<string[]> {
  const { problems, batches } = await openSource(file, {});
  const names: string[] = [];
  let rows = 0;
  const wrong = problems.map(({ message, got }) => `${message}: got ${got}`);
  for await (const batch of batches()) {
    for (const { cells, number } of batch.rows) {
      const name = cells["id"]?.trim() ?? "";
      const decision = (cells["decision"] ?? "").trim().toLowerCase();
      if (name === "" || decision === "") continue;
      rows++;
      const meaning = meanings[decision];
      if (meaning === undefined)
        wrong.push(
          `row ${number}: expected ${Object.keys(meanings).join(", ")} as decision, got ${JSON.stringify(decision)}`,
        );
      else if (decisions.includes(meaning)) names.push(name);
    }
  }
  if (wrong.length > 0)
    throw new EarlyExit("usage", `${file} cannot be used:\n  ${wrong.join("\n  ")}\nNothing was changed.`);
  if (names.length > 0) return names;
  throw new EarlyExit(
    "usage",
    rows === 0
      ? `${file} has no decisions: expected a sheet with the columns id and decision, one item a row`
      : `none of the ${count(rows, "decision")} in ${file} is for this command`,
  );
}
