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
      sum(CASE WHEN a.closed = 1 THEN coalesce(a.charged, 0) ELSE 0 END),
      sum(CASE WHEN a.closed = 1 THEN 0
               WHEN a.outcome = 'accepted' THEN coalesce(a.charged, a.price)
               WHEN a.verdict = 'not_charged' THEN 0
               WHEN a.outcome IS NULL OR a.outcome = 'unanswered' THEN a.price
               ELSE 0 END),
      sum(CASE WHEN a.closed = 0 AND a.outcome = 'accepted' THEN coalesce(a.charged, a.price) ELSE 0 END),
      count(*) FILTER (WHERE a.closed = 0 AND a.outcome = 'accepted'),
      count(*) FILTER (WHERE a.closed = 0 AND a.verdict IS DISTINCT FROM 'not_charged'
        AND (a.outcome IS NULL OR a.outcome = 'unanswered'))
    FROM attempts a JOIN items i ON i.id = a.item_id GROUP BY a.run_id, i.model`,
};

/** Queries for what the kept sums of a workspace say beyond a count of its tables, and what they lack. */
export const wrongSums: readonly string[] = [states, groups, spending].map(
  ({ kept, counted }) =>
    `SELECT * FROM (${kept} EXCEPT ${counted}) AS more UNION ALL SELECT * FROM (${counted} EXCEPT ${kept}) AS less`,
);
