import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.js";
import type { Place } from "./command.js";

/** How many items the workspace holds for archived. */
export function archivedItems(place: Place): number {
  const db = openSqlite(join(place.folder, ".bulkgen", "state.db"), { readonly: true });
  try {
    return db.prepare("SELECT count(*) FROM items WHERE state = 'archived'").pluck().get() as number;
  } finally {
    db.close();
  }
}

/** Makes every attempt so many ms older. No process may be at work in the workspace. */
export function backdate(place: Place, ms: number): void {
  const db = openSqlite(join(place.folder, ".bulkgen", "state.db"));
  try {
    db.prepare(
      "UPDATE attempts SET intended_at = intended_at - @ms, sent_at = sent_at - @ms, answered_at = answered_at - @ms",
    ).run({ ms });
  } finally {
    db.close();
  }
}

/** Whether a process was stopped by a signal and not let go since. */
export function isStopped(pid: number): boolean {
  return execFileSync("ps", ["-o", "state=", "-p", String(pid)], { encoding: "utf8" })
    .trim()
    .startsWith("T");
}
