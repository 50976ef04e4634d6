import type { Store } from "../../core/ports/store.js";
import type { WorkspaceDatabase } from "./transition.js";

/** The marks of a person beside items. Nothing else reads them: no pick changes what is made or paid. */
export function pickMethods({ atomic, sql }: WorkspaceDatabase): Pick<Store, "picks" | "pick"> {
  return {
    async picks() {
      const rows = sql("SELECT item_id AS id FROM picks ORDER BY item_id").all() as { id: number }[];
      return new Set(rows.map(({ id }) => id));
    },

    pick: async ({ picked, unpicked }) =>
      atomic(() => {
        for (const id of unpicked) sql("DELETE FROM picks WHERE item_id = ?").run(id);
        for (const id of picked) sql("INSERT OR IGNORE INTO picks (item_id) VALUES (?)").run(id);
      }),
  };
}
