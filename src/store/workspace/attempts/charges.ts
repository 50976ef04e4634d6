import type { Credits } from "../../../core/money.js";
import type { NewItem } from "../../../core/ports/store.js";
import type { Database } from "../../script.js";

/** What requests were charged, and the balances in their answers. */
export function chargeMethods({ read, sql }: Database) {
  return {
    /** The newest accepted request to a service: its spend-log entry, and when it was sent (UTC ms); null if there is none. */
    newestPaid: (origin: string): Promise<{ entry: number; sentAt: number } | null> =>
      read(function* () {
        const newest = yield* sql(
          `SELECT a.spend_log_id AS entry, a.sent_at AS "sentAt" FROM attempts a JOIN runs r ON r.id = a.run_id
         WHERE a.outcome = 'accepted' AND a.spend_log_id IS NOT NULL AND r.origin = ? ORDER BY a.id DESC LIMIT 1`,
        ).get(origin);
        return (newest as { entry: number; sentAt: number } | undefined) ?? null;
      }),

    /** The balance in the newest answer to a paid request of the run since this time (UTC ms); null if there was none. */
    lastBalance: (runId: number, since: number): Promise<Credits | null> =>
      read(function* () {
        const row = (yield* sql(newestBalance).get(runId, since)) as { remaining: Credits } | undefined;
        return row?.remaining ?? null;
      }),

    /** What the tasks of a run have cost, each with its item's cells and model, page by page. */
    async *charges(runId: number): AsyncIterable<readonly ChargedItem[]> {
      for (let after = 0; ; ) {
        const values = { runId, after };
        const page = await read(function* () {
          return (yield* sql(chargesOfRun).all(values)) as (Omit<ChargedItem, "cells"> & {
            id: number;
            cells: string;
          })[];
        });
        if (page.length === 0) return;
        yield page.map(({ id: _, cells, ...rest }) => ({ ...rest, cells: JSON.parse(cells) }));
        after = page.at(-1)?.id ?? after;
      }
    },
  };
}

/** A task that is paid for, and what it was of. */
export interface ChargedItem {
  model: string;
  cells: NewItem["cells"];
  charged: Credits;
}

const chargesOfRun = `
  SELECT attempts.id, items.model, items.cells, attempts.charged FROM attempts JOIN items ON items.id = attempts.item_id
  WHERE attempts.run_id = @runId AND attempts.closed = 1 AND attempts.charged > 0 AND attempts.id > @after
  ORDER BY attempts.id LIMIT 1000`;

const newestBalance = `
  SELECT remaining FROM attempts WHERE run_id = ? AND answered_at >= ? AND remaining IS NOT NULL
  ORDER BY answered_at DESC, id DESC LIMIT 1`;
