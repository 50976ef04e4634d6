import type { Migration } from "../open.js";

/**
 * The books of each key: every paid request sent with it, and its counters as the service showed them. `seq` numbers
 * are the order of all that the books hold; times are UTC ms, amounts millionths of a credit.
 */
export const booksMigration: Migration = (db) =>
  db.exec(`
    CREATE TABLE sequence (last INTEGER NOT NULL);
    INSERT INTO sequence VALUES (0);

    -- Requests of all keys of the account: sent so far, and answered of them.
    ALTER TABLE accounts ADD COLUMN sent INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE accounts ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;

    ALTER TABLE keys ADD COLUMN baseline INTEGER;
    ALTER TABLE keys ADD COLUMN hypotheses TEXT NOT NULL DEFAULT 'net,gross';
    ALTER TABLE keys ADD COLUMN trusted INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE keys ADD COLUMN counting TEXT NOT NULL DEFAULT 'unproven';
    ALTER TABLE keys ADD COLUMN foreign_at INTEGER;

    CREATE TABLE readings (
      id INTEGER PRIMARY KEY,
      origin TEXT NOT NULL,
      fingerprint TEXT NOT NULL,
      seq INTEGER NOT NULL,
      at INTEGER NOT NULL,
      served_at INTEGER,
      used INTEGER NOT NULL,
      requests INTEGER NOT NULL,
      sent INTEGER NOT NULL,
      answered INTEGER NOT NULL,
      FOREIGN KEY (origin, fingerprint) REFERENCES keys
    );
    CREATE INDEX readings_key ON readings (origin, fingerprint, seq);

    CREATE TABLE entries (
      id INTEGER PRIMARY KEY,
      origin TEXT NOT NULL,
      fingerprint TEXT NOT NULL,
      -- The state file of the workspace that sent it.
      workspace TEXT NOT NULL,
      item_key TEXT NOT NULL,
      price INTEGER NOT NULL,
      intended_seq INTEGER NOT NULL,
      intended_at INTEGER NOT NULL,
      ended_seq INTEGER,
      ended_at INTEGER,
      outcome TEXT CHECK (outcome IN ('free', 'accepted', 'unknown')),
      complete_error INTEGER NOT NULL DEFAULT 0,
      charged INTEGER,
      task TEXT CHECK (task IN ('open', 'completed', 'failed')),
      kept INTEGER NOT NULL DEFAULT 0,
      task_ended_at INTEGER,
      -- When its task was last looked at.
      looked_seq INTEGER NOT NULL DEFAULT 0,
      looked_at INTEGER,
      verdict TEXT CHECK (verdict IN ('not_charged', 'charged', 'undecided')),
      verdict_seq INTEGER,
      evidence TEXT,
      FOREIGN KEY (origin, fingerprint) REFERENCES keys
    );
    CREATE INDEX entries_key ON entries (origin, fingerprint, intended_seq);
    CREATE INDEX entries_unanswered ON entries (origin, fingerprint) WHERE outcome IS NULL OR (outcome = 'unknown' AND verdict IS NULL);
    CREATE INDEX entries_open ON entries (origin, fingerprint) WHERE task = 'open';
    CREATE INDEX entries_failed ON entries (origin, fingerprint, looked_at) WHERE task = 'failed';
    CREATE INDEX entries_workspace ON entries (workspace) WHERE outcome IS NULL OR task = 'open';
  `);
