import type { Sqlite } from "../../src/sqlite.js";

const states = {
  kept: "SELECT run_id, state, items FROM run_states WHERE items <> 0",
  counted: "SELECT run_id, state, count(*) FROM items WHERE run_id IS NOT NULL GROUP BY run_id, state",
};
const groups = {
  kept: "SELECT run_id, price_group, priority, price, model, category, items FROM run_groups WHERE items <> 0",
  counted: `SELECT run_id, price_group, priority, price, model, category, count(*) FROM items
    WHERE run_id IS NOT NULL AND state = 'planned' GROUP BY run_id, price_group, priority, price, model, category`,
};
const spending = {
  kept: "SELECT run_id, model, charged, pending, at_service, tasks, in_doubt FROM run_spending",
  counted: `
    SELECT a.run_id, i.model,
      sum(CASE WHEN a.closed THEN coalesce(a.charged, 0) ELSE 0 END),
      sum(CASE WHEN a.closed THEN 0
               WHEN a.outcome = 'accepted' THEN coalesce(a.charged, a.price)
               WHEN a.verdict = 'not_charged' THEN 0
               WHEN a.outcome IS NULL OR a.outcome = 'unanswered' THEN a.price
               ELSE 0 END),
      sum(CASE WHEN NOT a.closed AND a.outcome = 'accepted' THEN coalesce(a.charged, a.price) ELSE 0 END),
      count(*) FILTER (WHERE NOT a.closed AND a.outcome = 'accepted'),
      count(*) FILTER (WHERE NOT a.closed AND a.verdict IS NOT 'not_charged'
        AND (a.outcome IS NULL OR a.outcome = 'unanswered'))
    FROM attempts a JOIN items i ON i.id = a.item_id GROUP BY a.run_id, i.model`,
};

/** What the kept sums of a workspace say beyond a count of its tables, and what they lack. */
export function wrongSums(db: Sqlite): unknown[] {
  return [states, groups, spending].flatMap(({ kept, counted }) =>
    db
      .prepare(
        `SELECT * FROM (${kept} EXCEPT ${counted}) UNION ALL SELECT * FROM (${counted} EXCEPT ${kept})`,
      )
      .all(),
  );
}
