import type { Store } from "../../core/ports/store.js";
import type { Database, InTransaction, Script } from "../script.js";
import { wait } from "./chains.js";
import { applyTransition } from "./transition.js";

const states = "'planned', 'blocked', 'submitting', 'unknown', 'processing', 'overdue', 'ready'";
const isMade = "state = 'archived' AND coalesce(approval, 'approved') = 'approved'";
const mayBeFirst = `(state IN (${states}) OR (state = 'archived' AND approval = 'waiting'))`;

/**
 * How many items must be made before an item. Canaries are chosen by it, because one that waited for the others of its
 * group would never come: each item waits for items of a lower depth, or for a canary of its own depth or lower.
 */
const depths = `
  depths (id, depth) AS (
    SELECT id, 0 FROM items WHERE run_id = @runId AND state IN ('planned', 'blocked') AND NOT EXISTS (
      SELECT 1 FROM parents JOIN items parent ON parent.job_id = items.job_id AND parent.key = parents.parent_key
      WHERE parents.item_id = items.id AND parent.run_id = @runId AND parent.state IN ('planned', 'blocked'))
    UNION
    SELECT child.id, depth + 1 FROM depths JOIN items USING (id)
      JOIN parents ON parents.parent_key = items.key
      JOIN items child ON child.id = parents.item_id AND child.job_id = items.job_id AND child.run_id = @runId
        AND child.state = 'blocked')`;
const canariesOfRun = `
  WITH RECURSIVE ${depths},
  candidates AS (
    SELECT key, price_group, row_number() OVER (
        PARTITION BY price_group
        ORDER BY state IN ('planned', 'blocked'), coalesce(depth, 0), priority DESC, position, items.id
      ) AS place
    FROM items LEFT JOIN (SELECT id, max(depth) AS depth FROM depths GROUP BY id) deepest ON deepest.id = items.id
    WHERE run_id = @runId AND ${mayBeFirst}
      AND price_group NOT IN (SELECT price_group FROM items WHERE run_id = @runId AND ${isMade}))
  SELECT key, price_group AS "group" FROM candidates WHERE place = 1`;
const others = `
  SELECT id, state FROM items
  WHERE run_id = @runId AND price_group = @group AND key <> @key AND state IN ('planned', 'blocked')`;
// In this order: few items have a canary, and a run may have a million.
const withCanary = `
  SELECT id, state FROM parents CROSS JOIN items ON items.id = parents.item_id
  WHERE field = 'canary' AND run_id = @runId`;

/** Canaries: one item of each price group is made before the others. */
export function canaryMethods(connection: Database): Pick<Store, "canaries"> {
  return {
    canaries: async (runId, wanted) =>
      connection.atomic(function* () {
        yield* forgetCanaries(connection, runId);
        if (wanted) yield* chooseCanaries(connection, runId);
      }),
  };
}

function* forgetCanaries(connection: InTransaction, runId: number): Script<void> {
  const { sql } = connection;
  for (const { id, state } of (yield* sql(withCanary).all({ runId })) as { id: number; state: string }[]) {
    yield* sql("DELETE FROM parents WHERE item_id = ? AND field = 'canary'").run(id);
    if (state !== "blocked") continue;
    const waits = yield* sql(
      `SELECT CASE WHEN unpublished = 1 OR EXISTS (SELECT 1 FROM parents WHERE item_id = items.id) THEN 1 ELSE 0 END
       FROM items WHERE id = ?`,
    ).value(id);
    if (waits === 0) yield* applyTransition(connection, id, "released");
  }
}

function* chooseCanaries(connection: InTransaction, runId: number): Script<void> {
  const { sql } = connection;
  const canaries = (yield* sql(canariesOfRun).all({ runId })) as { key: string; group: string }[];
  for (const { key, group } of canaries) {
    for (const { id, state } of (yield* sql(others).all({ runId, group, key })) as {
      id: number;
      state: string;
    }[]) {
      yield* sql("INSERT INTO parents (item_id, field, parent_key, output) VALUES (?, 'canary', ?, 1)").run(
        id,
        key,
      );
      if (state === "planned") yield* wait(connection, id);
    }
  }
}
