import { variantKey } from "../../core/identity.js";
import type { ItemState } from "../../core/item.js";
import type { PickStanding } from "../../core/ports/store.js";
import { rowIdOf } from "../../core/variant.js";
import type { Queries, Script } from "../script.js";

/**
 * Where each picked item stands, of one job or of all. Changing a row makes another item for it, and the pick stays with
 * the earlier one. Variants are never marked as vanished, so a variant is judged by the item that it is a variant of.
 */
export function* pickStandings(sql: Queries, jobId: number | null): Script<PickStanding[]> {
  const picked = (yield* sql(
    `SELECT i.id, i.job_id AS jobId, j.name AS job, i.key, i.edition, i.row_id AS rowId, i.variant
     FROM picks p JOIN items i ON i.id = p.item_id JOIN jobs j ON j.id = i.job_id
     WHERE i.job_id = coalesce(@jobId, i.job_id) ORDER BY p.item_id`,
  ).all({ jobId })) as PickedRow[];
  const standings: PickStanding[] = [];
  for (const { id, jobId, job, key, edition, rowId, variant } of picked) {
    const versions = (yield* sql(
      // A row id has few items, a job has many.
      `SELECT key, vanished, state FROM items WHERE +job_id = ? AND edition = ? AND row_id = ? AND variant = 1
       ORDER BY id DESC`,
    ).all(jobId, edition, rowIdOf({ rowId, variant }))) as Version[];
    const isOriginal = (one: Version) => (variant === 1 ? one.key : variantKey(one.key, variant)) === key;
    const original = versions.find(isOriginal);
    const isAsked = original === undefined || original.vanished === 0;
    const newer = isAsked ? undefined : versions.find(({ vanished }) => vanished === 0);
    const now = isAsked ? "current" : standing(newer);
    standings.push({ itemId: id, rowId, job, edition, originalKey: original?.key ?? key, now });
  }
  return standings;
}

/** `newer` is what the row asks for instead. */
function standing(newer: Version | undefined): PickStanding["now"] {
  if (newer === undefined) return "removed";
  return newer.state === "archived" ? "replaced" : "changed";
}

interface PickedRow {
  id: number;
  jobId: number;
  job: string;
  key: string;
  edition: string;
  rowId: string;
  variant: number;
}

interface Version {
  key: string;
  vanished: number;
  state: ItemState;
}
