import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.js";
import type { Place } from "./command.js";

/** How many items are in each state; null while the workspace has no tables yet. */
export function itemCounts(place: Place, ...folders: string[]): Record<string, number> | null {
  const file = join(place.folder, ".bulkgen", ...folders, "state.db");
  if (!existsSync(file)) return null;
  const db = openSqlite(file, { readonly: true });
  try {
    const tables = db.prepare("SELECT count(*) FROM sqlite_schema WHERE name = 'items'").pluck().get();
    if (tables === 0) return null;
    const rows = db.prepare("SELECT state, count(*) AS count FROM items GROUP BY state").all();
    return Object.fromEntries(
      (rows as { state: string; count: number }[]).map(({ state, count }) => [state, count]),
    );
  } finally {
    db.close();
  }
}

/** How many items the workspace holds for archived. */
export function archivedItems(place: Place): number {
  const db = openSqlite(join(place.folder, ".bulkgen", "state.db"), { readonly: true });
  try {
    return db.prepare("SELECT count(*) FROM items WHERE state = 'archived'").pluck().get() as number;
  } finally {
    db.close();
  }
}

/** Makes every attempt so many ms older. No process may run in the workspace. */
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
