import type { BlockedItem, ParentOutput } from "../core/ports/store.js";
import { rowIdOf, variantNumber } from "../core/variant.js";
import type { Store } from "../store/workspace/workspace.js";
import { count } from "../text/amounts.js";

/** An item that waits for the output of another one, and why it does not come. */
export interface BlockedReason {
  rowId: string;
  rowNumber: number;
  /** With the name of the other item. */
  reason: string;
  /** The reason without the other item's name: many items may have one cause. */
  cause: string;
}

/** The blocked items of a run. */
export async function blockedIn(
  store: Pick<Store, "blocked" | "awaitingApproval" | "item">,
  runId: number,
): Promise<BlockedReason[]> {
  const blocked = await store.blocked(runId);
  const replacements = await replacementsFor(store, runId, blocked);
  return blocked.map((item) => {
    const { rowId, rowNumber } = item;
    const parent = item.parents.find((each) => !isAtHand(each));
    const { name, cause } =
      parent === undefined ? fromNote(item) : causeOf(replacements.get(parent.id) ?? parent);
    if (name === null) return { rowId, rowNumber, cause, reason: cause };
    return { rowId, rowNumber, cause: `waits for an item ${cause}`, reason: `waits for ${name}, ${cause}` };
  });
}

/** For rejected items, the newest variant of the row that waits for approval: approved, it takes the item's place. */
async function replacementsFor(
  store: Pick<Store, "awaitingApproval" | "item">,
  runId: number,
  blocked: readonly BlockedItem[],
): Promise<ReadonlyMap<number | null, ParentOutput>> {
  const rejected = new Map<number, ParentOutput>();
  for (const { parents } of blocked)
    for (const parent of parents)
      if (parent.approval === "rejected" && parent.id !== null) rejected.set(parent.id, parent);
  const variants = new Map<string, string>();
  const awaiting = rejected.size === 0 ? [] : await store.awaitingApproval(runId);
  for (const { id, rowId } of awaiting) {
    const item = variantNumber(rowId) !== null ? await store.item(id) : null;
    if (item !== null && item.variant > 1) variants.set(rowIdOf(item), rowId);
  }
  const replacements = new Map<number, ParentOutput>();
  for (const [id, parent] of variants.size === 0 ? [] : rejected) {
    const rowId = variants.get(rowIdOf(await store.item(id)));
    if (rowId !== undefined)
      replacements.set(id, { ...parent, rowId, approval: "waiting", state: "archived" });
  }
  return replacements;
}

function isAtHand({ field, state, approval, url }: ParentOutput): boolean {
  if ((approval ?? "approved") !== "approved") return false;
  if (field === "canary") return state === "archived";
  return (state === "ready" || state === "archived") && url !== null && url !== "";
}

/** Every parent is there, but the service gives no address of its output that can be used. */
function fromNote({ note }: BlockedItem): { name: null; cause: string } {
  return {
    name: null,
    cause: note ?? "the output that it takes needs a new address; the next run asks for it",
  };
}

function causeOf({ rowId, state, approval, note, url, outputs, output }: ParentOutput): {
  name: string;
  cause: string;
} {
  const name = rowId ?? "an item";
  if (approval === "rejected") return { name, cause: "which was rejected" };
  if (approval === "waiting" && state === "archived") return { name, cause: "which you have not approved" };
  switch (state) {
    case null:
      return { name, cause: "which is not on record: run the manifest again" };
    case "failed":
      return { name, cause: note === null ? "which failed" : `which failed: ${note}` };
    case "held":
      return { name, cause: "which is held" };
    case "dropped":
      return { name, cause: "which was skipped or cancelled" };
    case "blocked":
      return { name, cause: "which is blocked itself" };
    case "unknown":
      return { name, cause: "whose charge is not settled yet" };
    case "overdue":
      return { name, cause: "whose task takes longer than expected" };
    case "ready":
    case "archived":
      return {
        name,
        cause:
          url === ""
            ? "whose file was made elsewhere: put it where the service can read it and write that address in place of the reference"
            : `which has ${count(outputs, "output")}, and output ${output} is wanted`,
      };
    default:
      return { name, cause: "which is not made yet" };
  }
}
