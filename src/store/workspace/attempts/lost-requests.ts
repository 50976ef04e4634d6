import type { Verdict } from "../../../core/charges/readings.js";
import type { Credits } from "../../../core/money.js";
import type { Attempt } from "../../../core/ports/attempt.js";
import type { AfterVerdict } from "../../../core/ports/store.js";
import type { Database } from "../../script.js";
import { applyTransition } from "../transition.js";
import { leaveIfVanished, newestOf, selectAttempts } from "./attempts.js";

/** Paid requests that got no answer: the verdicts on them, and what they have cost or may have cost. */
export function lostRequestMethods(connection: Database) {
  const { atomic, read, sql } = connection;
  return {
    /** Records the verdict on an unanswered paid request: its item continues, or is held. */
    giveVerdict: async (
      itemId: number,
      verdict: Verdict,
      note: string,
      { nextAt = 0, isGivenUp = false }: AfterVerdict = {},
    ): Promise<void> =>
      atomic(function* () {
        if (isGivenUp)
          yield* applyTransition(connection, itemId, "given_up", { note, failure_kind: "provider" });
        else yield* applyTransition(connection, itemId, verdict, { next_at: nextAt, note });
        yield* sql("UPDATE attempts SET verdict = ? WHERE id = ?").run(
          verdict,
          (yield* newestOf(connection, itemId))?.id,
        );
        if (verdict === "not_charged") yield* leaveIfVanished(connection, itemId);
      }),

    /**
     * How many of an item's paid requests in a row ended without an answer, the newest included. A task or a rejection ends
     * such a row.
     */
    lostInARow: (itemId: number): Promise<number> =>
      read(function* () {
        return (yield* sql(
          `SELECT count(*) FROM attempts WHERE item_id = @itemId AND outcome = 'unanswered' AND number > coalesce(
             (SELECT max(number) FROM attempts WHERE item_id = @itemId AND outcome IN ('accepted', 'rejected')), 0)`,
        ).value({ itemId })) as number;
      }),

    /** The cost of lost attempts whose items were submitted again. */
    resubmitted: (runId: number): Promise<Credits> =>
      read(function* () {
        const { sum } = (yield* sql(
          `SELECT coalesce(sum(a.price), 0) AS sum FROM attempts a JOIN items i ON i.id = a.item_id
         WHERE ? IN (a.run_id, i.run_id) AND ${isLost("a")}
           AND (i.state NOT IN ('held', 'dropped') OR a.number < ${newestNumber("i")})`,
        ).get(runId)) as { sum: number };
        return sum as Credits;
      }),

    /**
     * Attempts that were or may have been charged, and whose task is unknown. For a run: those whose items continued, and
     * that the run sent, or that an earlier run sent and this run pays again.
     */
    orphans: (of: { item: number } | { run: number }): Promise<Attempt[]> =>
      read(function* () {
        const rows = "item" in of ? yield* sql(orphansOfItem).all(of.item) : yield* sql(orphansOfRun).all(of);
        return rows as Attempt[];
      }),
  };
}

/** The condition that a request brought nothing, and was or may have been charged, for the alias of its table. */
export function isLost(attempt: string): string {
  return `${attempt}.outcome = 'unanswered' AND ${attempt}.verdict IN ('charged', 'undecided')`;
}

/** The condition that a person has yet to decide about a request: its item is held for it. */
export function isUndecided(attempt: string, item: string): string {
  return `(${item}.state = 'held' AND ${attempt}.number = ${newestNumber(item)})`;
}

/** The number of the newest attempt of an item. */
function newestNumber(item: string): string {
  return `(SELECT max(number) FROM attempts WHERE item_id = ${item}.id)`;
}

const isOrphan = isLost("attempts");
const orphansOfItem = `${selectAttempts} WHERE attempts.item_id = ? AND ${isOrphan} ORDER BY attempts.number`;
// The lost requests that the run sent, and those whose items the run has paid for again or is about to.
const orphansOfRun = `
  ${selectAttempts} JOIN items i ON i.id = attempts.item_id
  WHERE ${isOrphan}
    AND (attempts.run_id = @run OR (i.run_id = @run AND i.state = 'planned') OR EXISTS (
      SELECT 1 FROM attempts again WHERE again.item_id = attempts.item_id AND again.number > attempts.number AND again.run_id = @run))
    AND NOT ${isUndecided("attempts", "i")}
  -- The sign keeps SQLite from reading all attempts in their order.
  ORDER BY +attempts.id`;
