import type { Draft } from "../../core/ports/draft.js";
import type { Sql } from "../../sqlite.js";
import type { Progress } from "./draft-tables.js";

/** Which rows of a plan in the making are wanted, and in which order their items go. */
export function draftChoice(sql: Sql, progress: Progress): Pick<Draft, "choose" | "reorder"> {
  return {
    choose({ onlyFailed, sample, first }) {
      progress.tally.spoil();
      if (onlyFailed) sql(`UPDATE drafted SET chosen = 0 WHERE chosen AND row NOT IN (${failedRows})`).run();
      if (sample !== null) keepFirst(sql, "lot, number", sample);
      if (first !== null) keepFirst(sql, "row", first);
      sql("UPDATE drafted SET wanted = chosen").run();
      shareItems(sql);
      sql(
        `UPDATE problems SET hidden = 1 WHERE row IN (SELECT number FROM drafted)
           AND row NOT IN (SELECT number FROM drafted WHERE chosen)`,
      ).run();
      return sql("SELECT count(*) FROM drafted WHERE chosen AND first").value() as number;
    },

    reorder(order) {
      progress.prioritised = order === "cheapest";
      const rank =
        "(SELECT dense_rank FROM ranks JOIN kinds ON kinds.price = ranks.price WHERE kinds.id = drafted.kind)";
      if (order === "sheet") sql("UPDATE drafted SET priority = 0 WHERE priority <> 0").run();
      else
        sql(
          `WITH ranks AS (SELECT price, dense_rank() OVER (ORDER BY price) AS dense_rank
             FROM (SELECT DISTINCT price FROM planned WHERE wanted))
           UPDATE drafted SET priority = 1 - ${rank} WHERE key IS NOT NULL AND wanted`,
        ).run();
    },
  };
}

/**
 * Rows with a failed item; and rows that were mended, so that their items are new, whose item of before failed. Once what
 * they ask for now is made, what failed before is past.
 */
const failedRows = `
  SELECT d.row FROM planned d JOIN known k ON k.key = d.key WHERE k.state = 'failed'
  UNION
  SELECT row FROM planned WHERE row_id IN (SELECT row_id FROM known WHERE state = 'failed')
    AND row NOT IN (SELECT d.row FROM drafted d JOIN known k ON k.key = d.key)
  UNION
  SELECT row FROM drafted WHERE key IS NULL AND id IN (SELECT row_id FROM known WHERE state = 'failed')
`;

function keepFirst(sql: Sql, order: string, count: number): void {
  sql(
    `UPDATE drafted SET chosen = 0 WHERE chosen AND row NOT IN
       (SELECT row FROM drafted WHERE chosen AND first ORDER BY ${order} LIMIT ?)`,
  ).run(count);
}

/** A row that shares the items of another one wants them whether that other one is chosen or not. */
function shareItems(sql: Sql): void {
  sql(
    `UPDATE drafted SET wanted = 1 WHERE NOT wanted AND key IS NOT NULL AND EXISTS (
       SELECT 1 FROM drafted sharing WHERE sharing.chosen AND sharing.shares IS NOT NULL
         AND sharing.shared = coalesce(drafted.head, drafted.position) AND drafted.occurrence <= sharing.shares)`,
  ).run();
}
