import { variantKey } from "../../core/identity.js";
import type { Credits } from "../../core/money.js";
import type { OrderedVariant } from "../../core/ports/store.js";
import { rowIdOf } from "../../core/variant.js";
import type { InTransaction, Script } from "../script.js";

interface OrderedRow {
  id: number;
  key: string;
  rowId: string;
  variant: number;
  price: Credits;
}

/** Variants of a job's edition that a person has ordered and agreed to pay for, and that are not submitted yet. */
export function* orderedVariants(
  { sql }: Pick<InTransaction, "sql">,
  jobId: number,
  edition: string,
): Script<(OrderedVariant & { id: number })[]> {
  const rows = (yield* sql(
    `SELECT id, key, row_id AS rowId, variant, price FROM items
     WHERE job_id = ? AND edition = ? AND variant > 1 AND state IN ('planned', 'blocked') ORDER BY id`,
  ).all(jobId, edition)) as OrderedRow[];
  const ordered: (OrderedVariant & { id: number })[] = [];
  for (const { id, key, rowId, variant, price } of rows) {
    const named = (yield* sql(
      // A row id has few items, a job has many.
      "SELECT key FROM items WHERE +job_id = ? AND edition = ? AND row_id = ? AND variant = 1",
    ).all(jobId, edition, rowIdOf({ rowId, variant }))) as { key: string }[];
    const own = named.find((each) => variantKey(each.key, variant) === key);
    ordered.push({
      id,
      rowId,
      price,
      of: own?.key ?? (yield* renamed({ sql }, jobId, edition, { key, variant })),
    });
  }
  return ordered;
}

/** The key of the row's item whose row has another id by now. */
function* renamed(
  { sql }: Pick<InTransaction, "sql">,
  jobId: number,
  edition: string,
  { key, variant }: { key: string; variant: number },
): Script<string | null> {
  const all = (yield* sql("SELECT key FROM items WHERE job_id = ? AND edition = ? AND variant = 1").all(
    jobId,
    edition,
  )) as { key: string }[];
  return all.find((each) => variantKey(each.key, variant) === key)?.key ?? null;
}
