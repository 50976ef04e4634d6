import type { Store } from "../../core/ports/store.js";
import type { Database } from "../script.js";

/** The marks of a person beside items. Nothing else reads them: no pick changes what is made or paid. */
export function pickMethods({ atomic, read, sql }: Database): Pick<Store, "picks" | "pick"> {
  return {
    picks: () =>
      read(function* () {
        const rows = (yield* sql("SELECT item_id AS id FROM picks ORDER BY item_id").all()) as {
          id: number;
        }[];
        return new Set(rows.map(({ id }) => id));
      }),

    pick: async ({ picked, unpicked }) =>
      atomic(function* () {
        for (const id of unpicked) yield* sql("DELETE FROM picks WHERE item_id = ?").run(id);
        for (const id of picked)
          yield* sql("INSERT INTO picks (item_id) VALUES (?) ON CONFLICT DO NOTHING").run(id);
      }),
  };
}
