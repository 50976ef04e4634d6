import type { Draft } from "../../core/ports/draft.js";
import type { Problem } from "../../core/problem.js";
import type { Sqlite } from "../../sqlite.js";
import type { Listing } from "../../text/listing.js";
import { listing } from "./draft-listing.js";

/** Problems of a plan in the making, of which there may be as many as rows. */
export interface Problems {
  put: Draft["problem"];
  all(): Listing<Problem>;
  clear(): void;
}

export function draftProblems(db: Sqlite): Problems {
  const insert = db.prepare("INSERT INTO problems (row, row_id, document) VALUES (?, ?, ?)");
  // Nearly always they come in the order of the sheet, and to sort a million of them takes longer than to read them.
  let sorted = true;
  let last = 0;
  return {
    put(problem) {
      const row = problem.place.row ?? 0;
      if (row < last) sorted = false;
      last = row;
      insert.run(row, problem.place.id ?? null, JSON.stringify(problem));
    },

    all: () =>
      listing(
        db,
        `SELECT document FROM problems WHERE NOT hidden ORDER BY ${sorted ? "id" : "row, id"}`,
        (row) => JSON.parse(row["document"] as string) as Problem,
      ),

    clear() {
      sorted = true;
      last = 0;
    },
  };
}
