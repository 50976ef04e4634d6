import type { Sqlite } from "../../sqlite.js";
import type { Listing } from "../../text/listing.js";

type Row = Record<string, unknown>;

/** What a query finds, counted when that is asked and read one by one, as often as it is asked for. */
export function listing<Thing>(
  db: Sqlite,
  query: string,
  asThing: (row: Row) => Thing = (row) => row as Thing,
  values: readonly unknown[] = [],
): Listing<Thing> {
  let length: number | null = null;
  return {
    get length() {
      const count = () => db.prepare(`SELECT count(*) FROM (${query})`).pluck();
      length ??= count().get(...values) as number;
      return length;
    },
    *[Symbol.iterator]() {
      // A statement of its own, because one that is being read cannot be read a second time.
      for (const row of db.prepare(query).iterate(...values)) yield asThing(row as Row);
    },
  };
}
