import type { Pacing } from "../../core/quota/quota.js";
import type { Migration } from "../open.js";

/**
 * The books of each key: every paid request sent with it, and its counters as the service showed them. `seq` numbers
 * are the order of all that the books hold; times are UTC ms, amounts millionths of a credit.
 */
const booksMigration: Migration = (db) =>
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

/** Times are UTC ms. `ended_at` is when the answer came, or the latest at which one that never came counts as ended. */
export const accountsMigrations: readonly Migration[] = [
  (db) =>
    db.exec(`
      CREATE TABLE opened (count INTEGER NOT NULL);
      INSERT INTO opened VALUES (0);
      CREATE TABLE accounts (
        id INTEGER PRIMARY KEY,
        origin TEXT NOT NULL,
        user_id TEXT,
        limit_minute INTEGER,
        limit_day INTEGER,
        silent_until INTEGER,
        strikes INTEGER NOT NULL DEFAULT 0,
        UNIQUE (origin, user_id)
      );
      CREATE TABLE keys (
        origin TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        account_id INTEGER NOT NULL REFERENCES accounts,
        PRIMARY KEY (origin, fingerprint)
      );
      CREATE TABLE requests (
        id INTEGER PRIMARY KEY,
        account_id INTEGER NOT NULL REFERENCES accounts,
        endpoint TEXT NOT NULL,
        sent_at INTEGER NOT NULL,
        ended_at INTEGER NOT NULL
      );
      CREATE INDEX requests_window ON requests (account_id, ended_at);
      -- The highest charge seen, in millionths of a credit, for a model with its params.
      CREATE TABLE charges (
        origin TEXT NOT NULL,
        price_group TEXT NOT NULL,
        highest INTEGER NOT NULL,
        PRIMARY KEY (origin, price_group)
      );
    `),
  booksMigration,
  (db) => db.exec(timing),
  // What was counted is proven by credits alone, so nothing ever read it.
  (db) => db.exec("ALTER TABLE keys DROP COLUMN counting"),
  // How long the addresses of outputs live, in ms, as far as it was seen.
  (db) =>
    db.exec(`
      CREATE TABLE lifetimes (
        origin TEXT NOT NULL,
        host TEXT NOT NULL,
        worked_ms INTEGER NOT NULL,
        ended_ms INTEGER,
        PRIMARY KEY (origin, host)
      );
    `),
  // When the service asked for silence: a silence that lies far ahead may be meant, or the clock was put back.
  (db) => db.exec("ALTER TABLE accounts ADD COLUMN silent_at INTEGER"),
  // Charges whose tasks nobody can look at: what a failed one gives back may hide another charge.
  (db) =>
    db.exec(
      "CREATE INDEX entries_lost ON entries (origin, fingerprint, ended_at) WHERE outcome = 'unknown' AND verdict IN ('charged', 'undecided')",
    ),
  (db) => db.exec(perKey),
  (db) => db.exec(sentAt),
  // The task that a paid request led to: it belongs to that request's workspace.
  (db) => db.exec("ALTER TABLE entries ADD COLUMN task_id TEXT"),
  (db) => db.exec(recentEntries),
];

const timing = `
  -- How requests follow one another, since when, and what it was before.
  ALTER TABLE accounts ADD COLUMN gait TEXT NOT NULL DEFAULT 'burst' CHECK (gait IN ('burst', 'paced', 'strict'));
  ALTER TABLE accounts ADD COLUMN gait_at INTEGER;
  ALTER TABLE accounts ADD COLUMN gait_before TEXT;
  -- What a key had made when it was last told, and what of it was ours.
  ALTER TABLE keys ADD COLUMN told INTEGER;
  ALTER TABLE keys ADD COLUMN told_at INTEGER;
  ALTER TABLE keys ADD COLUMN told_sent INTEGER;
  ALTER TABLE keys ADD COLUMN told_open INTEGER;
  -- Requests of the day that workspaces need for their open tasks.
  CREATE TABLE owed (
    account_id INTEGER NOT NULL REFERENCES accounts,
    workspace TEXT NOT NULL,
    requests INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (account_id, workspace)
  );
  -- How long generations took at a service, in ms.
  CREATE TABLE durations (
    id INTEGER PRIMARY KEY,
    origin TEXT NOT NULL,
    model TEXT NOT NULL,
    price_group TEXT NOT NULL,
    ms INTEGER NOT NULL,
    at INTEGER NOT NULL
  );
  CREATE INDEX durations_kind ON durations (origin, model, price_group, id);
`;

/**
 * Requests are counted for each key, as the service counts them. Of requests before a look, it keeps those that were
 * over: what was lost explains nothing for ever. Looks that are there already cannot tell lost from answered; taking all
 * of them for over errs on the side where nothing is paid twice.
 */
const perKey = `
  ALTER TABLE requests ADD COLUMN fingerprint TEXT;
  ALTER TABLE keys ADD COLUMN sent INTEGER NOT NULL DEFAULT 0;
  UPDATE keys SET sent = (SELECT sent FROM accounts WHERE id = account_id);
  ALTER TABLE readings RENAME COLUMN answered TO over;
  UPDATE readings SET over = sent;
  ALTER TABLE keys RENAME COLUMN told_open TO told_over;
  UPDATE keys SET told_over = told_sent - told_over;
  ALTER TABLE keys DROP COLUMN told_sent;
  ALTER TABLE accounts DROP COLUMN answered;
`;

/**
 * When a paid request was sent, by the service's clock as far as it is known: a day's cap counts by it. One that seems to
 * be of the future was sent while a clock was ahead; it counts on the day on which it was found as well.
 */
const sentAt = `
  ALTER TABLE entries ADD COLUMN sent_at INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE entries ADD COLUMN found_at INTEGER;
  UPDATE entries SET sent_at = intended_at;
  CREATE INDEX entries_sent ON entries (sent_at);
`;

/**
 * What may still give credits back is found by its time. This machine's clock may have been wrong when it ended or was
 * looked at: it did so no earlier than it was sent.
 */
const recentEntries = `
  DROP INDEX entries_failed;
  CREATE INDEX entries_failed ON entries (origin, fingerprint, max(looked_at, sent_at)) WHERE task = 'failed';
  DROP INDEX entries_lost;
  CREATE INDEX entries_lost ON entries (origin, fingerprint, max(ended_at, sent_at))
    WHERE outcome = 'unknown' AND verdict IN ('charged', 'undecided');
`;

export interface AccountRow {
  id: number;
  origin: string;
  user_id: string | null;
  limit_minute: number | null;
  limit_day: number | null;
  silent_until: number | null;
  silent_at: number | null;
  strikes: number;
  gait: Pacing;
  gait_at: number | null;
  gait_before: Pacing | null;
  sent: number;
}
