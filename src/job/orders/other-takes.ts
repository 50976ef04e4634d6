import { inCredits, sumOf } from "../../core/money.js";
import type { Item } from "../../core/ports/store.js";
import type { MadeOfOther } from "../../store/workspace/approvals.js";
import { someOf } from "../../text/reasons.js";
import { shellWord } from "../../text/shell.js";

const namedMax = 20;

/**
 * What was made of another take than the chosen one, and how it is made of this one, with the price; null if nothing was. `flags` are
 * those that the user has to type again.
 */
export function madeOfOthersText(
  { rowId: chosen, approval }: Pick<Item, "rowId" | "approval">,
  others: readonly MadeOfOther[],
  flags: string,
): string | null {
  const [first] = others;
  if (first === undefined) return null;
  const ids = others.map(({ rowId }) => rowId);
  const [was, it] = others.length === 1 ? ["was", "it"] : ["were", "them"];
  const made = `${someOf(ids)} ${was} made of ${someOf([...new Set(others.map(({ madeOf }) => madeOf))])}`;
  if (first.approval === null)
    return `${made}; only a step with approve: true hands on another take than the first`;
  const redo = `\`bulkgen redo ${ids.slice(0, namedMax).map(shellWord).join(" ")}${flags}\``;
  const again = `${redo} makes ${it} of ${chosen}, for ${inCredits(sumOf(others.map(({ price }) => price)))}`;
  if (first.approval === "rejected")
    return approval === "waiting" ? `${made}: approve ${chosen}, then ${again}` : `${made}: ${again}`;
  return `${made}: reject ${first.madeOf}, then ${again}`;
}

/** What was made of rejected takes, by their ids. */
export function madeOfRejectedText(ids: readonly string[]): string {
  const [was, is, it] = ids.length === 1 ? ["was", "is", "it"] : ["were", "are", "them"];
  return `${someOf(ids)} ${was} made of what is rejected, and ${is} left out of the final set: approve another take, then redo ${it}`;
}
