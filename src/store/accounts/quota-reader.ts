import type { Quota } from "../../core/quota/quota.js";
import { openSqlite, statements } from "../../sqlite.js";
import { quotaOf } from "./windows.js";

/** The quota of an account for those who only look, on a read-only connection. */
export interface QuotaReader {
  /** Null where the account is not known, or its requests are of the future. */
  read(now: number): Quota | null;
  close(): void;
}

/** Opens the quota of a user at a service. Throws SQLite's error. */
export function openQuota(path: string, origin: string, userId: string): QuotaReader {
  const db = openSqlite(path, { readonly: true });
  const sql = statements(db);
  return {
    read(now) {
      const id = sql("SELECT id FROM accounts WHERE origin = ? AND user_id = ?").value(origin, userId);
      return id === undefined ? null : quotaOf(sql, Number(id), { now, claimant: undefined });
    },
    close: () => db.close(),
  };
}
