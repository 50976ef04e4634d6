import { resolve } from "node:path";
import { type ReviewDecision, type ReviewedName, reviewedNames } from "../../job/orders/review.js";
import type { Machine } from "../../machine.js";

/** The names of the items for which a review file has these decisions. Says which of its columns are not used. Throws EarlyExit. */
export function namesIn(
  file: string,
  decisions: readonly ReviewDecision[],
  { cwd, stderr }: Pick<Machine, "cwd" | "stderr">,
): Promise<ReviewedName[]> {
  return reviewedNames(resolve(cwd, file), decisions, (note) => stderr.write(`bulkgen: ${note}.\n`));
}
