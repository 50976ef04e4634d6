import type { Pacing } from "../../core/quota/quota.js";
import type { Migration } from "../open.js";
import { sqliteTriggers, type Trigger } from "../triggers.js";

/** The accounts database, one function a version. Times are UTC ms, amounts millionths of a credit. */
export const accountsMigrations: readonly Migration[] = [
  (db) => {
    for (const tables of accountsTables) db.exec(tables);
    db.exec(sqliteTriggers(accountsTriggers));
  },
  (db) => db.exec(listPricesTable),
  (db) => db.exec(placesTables),
  (db) => db.exec(leftOutTable),
  (db) => db.exec(repeatedColumn),
];

const quotaTables = `
  CREATE TABLE opened (count INTEGER NOT NULL);
  INSERT INTO opened VALUES (0);

  CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    origin TEXT NOT NULL,
    user_id TEXT,
    limit_minute INTEGER,
    limit_day INTEGER,
    -- When the service asked for silence, and until when. One far ahead may be meant, or the clock was put back since.
    silent_at INTEGER,
    silent_until INTEGER,
    strikes INTEGER NOT NULL DEFAULT 0,
    -- Requests of all keys of the account.
    sent INTEGER NOT NULL DEFAULT 0,
    -- How requests are spaced, since when, and how they were before.
    pacing TEXT NOT NULL DEFAULT 'burst' CHECK (pacing IN ('burst', 'paced', 'strict')),
    pacing_since INTEGER,
    pacing_before TEXT,
    UNIQUE (origin, user_id)
  );

  CREATE TABLE keys (
    origin TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    account_id INTEGER NOT NULL REFERENCES accounts,
    -- Requests sent with the key, counted as the service counts them.
    sent INTEGER NOT NULL DEFAULT 0,
    -- The service's last count of the key's requests, when it was read, and how many of ours had ended by then.
    counted INTEGER,
    counted_at INTEGER,
    counted_over INTEGER,
    -- What the readings of the key have shown.
    baseline INTEGER,
    hypotheses TEXT NOT NULL DEFAULT 'net,gross',
    trusted INTEGER NOT NULL DEFAULT 0,
    foreign_at INTEGER,
    PRIMARY KEY (origin, fingerprint)
  );

  CREATE TABLE requests (
    -- Never used again: an answer that comes late must not end another request.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts,
    fingerprint TEXT,
    endpoint TEXT NOT NULL,
    sent_at INTEGER NOT NULL,
    -- When the answer came; without an answer, the latest time at which the request may end.
    ended_at INTEGER NOT NULL
  );
  CREATE INDEX requests_window ON requests (account_id, ended_at);

  -- Requests of the day that runs need for their open tasks.
  CREATE TABLE owed (
    account_id INTEGER NOT NULL REFERENCES accounts,
    run TEXT NOT NULL,
    requests INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (account_id, run)
  );

  -- The highest charge seen for a model with its params.
  CREATE TABLE charges (
    origin TEXT NOT NULL,
    price_group TEXT NOT NULL,
    highest INTEGER NOT NULL,
    PRIMARY KEY (origin, price_group)
  );

  -- How long generations took, in ms.
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

/** Since version 2. */
export const listPricesTable = `
  -- The service's list price of each model when its models were last read.
  CREATE TABLE list_prices (
    origin TEXT NOT NULL,
    model TEXT NOT NULL,
    price INTEGER NOT NULL,
    PRIMARY KEY (origin, model)
  );
`;

/** Since version 3. */
export const placesTables = `
  -- Where each workspace of the spend log was last used.
  CREATE TABLE workspaces (
    -- Its id, or the schema of its database. A folder that is no workspace yet has the name of its state file.
    name TEXT PRIMARY KEY,
    -- The state file, or the schema of the database.
    state TEXT NOT NULL,
    root TEXT NOT NULL
  );

  -- Services that a person has said to be the same as one at an earlier address.
  CREATE TABLE same_services (
    address TEXT PRIMARY KEY,
    -- The address of before, which stays the name of the service.
    origin TEXT NOT NULL
  );

  -- What a key was charged, up to its baseline, for requests that this machine did not send; and how much of it a
  -- workspace knew of when it last bought with the key.
  ALTER TABLE keys ADD COLUMN foreign_credits INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE foreign_known (
    workspace TEXT NOT NULL,
    origin TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    credits INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (workspace, origin, fingerprint)
  );
`;

/** Since version 4. */
export const leftOutTable = `
  -- The defaults that requests for a model have left out, because the service did not take them then.
  CREATE TABLE left_out (
    origin TEXT NOT NULL,
    model TEXT NOT NULL,
    param TEXT NOT NULL,
    PRIMARY KEY (origin, model, param)
  );
`;

/** Since version 5. */
export const repeatedColumn = `
  -- Where in the spend log the request was repeated last.
  ALTER TABLE spend_log ADD COLUMN repeated_seq INTEGER;
  CREATE INDEX spend_log_repeated ON spend_log (origin, fingerprint, repeated_seq) WHERE repeated_seq IS NOT NULL;
`;

/** The paid requests of each key, and its counters as the service showed them. `seq` orders everything in the spend log. */
const spendLogTables = `
  CREATE TABLE sequence (last INTEGER NOT NULL);
  INSERT INTO sequence VALUES (0);

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
    -- Our requests that had ended: answered, or lost for good.
    over INTEGER NOT NULL,
    FOREIGN KEY (origin, fingerprint) REFERENCES keys
  );
  CREATE INDEX readings_key ON readings (origin, fingerprint, seq);

  CREATE TABLE spend_log (
    id INTEGER PRIMARY KEY,
    origin TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    -- The state file of the workspace that sent it.
    workspace TEXT NOT NULL,
    item_key TEXT NOT NULL,
    price INTEGER NOT NULL,
    intended_seq INTEGER NOT NULL,
    intended_at INTEGER NOT NULL,
    -- By the service's clock as far as it is known. A time in the future means that a clock was ahead: then found_at is
    -- the end of the day on which it was found, and the request counts on that day as well.
    sent_at INTEGER NOT NULL,
    found_at INTEGER,
    ended_seq INTEGER,
    ended_at INTEGER,
    outcome TEXT CHECK (outcome IN ('free', 'accepted', 'unknown')),
    complete_error INTEGER NOT NULL DEFAULT 0,
    charged INTEGER,
    -- The task belongs to the workspace of this request.
    task_id TEXT,
    task TEXT CHECK (task IN ('open', 'completed', 'failed')),
    -- What a failed task still cost.
    kept INTEGER NOT NULL DEFAULT 0,
    task_ended_at INTEGER,
    polled_seq INTEGER NOT NULL DEFAULT 0,
    polled_at INTEGER,
    verdict TEXT CHECK (verdict IN ('not_charged', 'charged', 'undecided')),
    verdict_seq INTEGER,
    evidence TEXT,
    FOREIGN KEY (origin, fingerprint) REFERENCES keys
  );
  CREATE INDEX spend_log_key ON spend_log (origin, fingerprint, intended_seq);
  CREATE INDEX spend_log_sent ON spend_log (sent_at);
  CREATE INDEX spend_log_unanswered ON spend_log (origin, fingerprint)
    WHERE outcome IS NULL OR (outcome = 'unknown' AND verdict IS NULL);
  CREATE INDEX spend_log_open ON spend_log (origin, fingerprint) WHERE task = 'open';
  CREATE INDEX spend_log_workspace ON spend_log (workspace) WHERE outcome IS NULL OR task = 'open';
  -- What may still give credits back is found by its time. This machine's clock may have been wrong when a task ended or
  -- was polled, but it cannot have been before the request was sent.
  CREATE INDEX spend_log_failed ON spend_log (origin, fingerprint, max(polled_at, sent_at)) WHERE task = 'failed';
  CREATE INDEX spend_log_lost ON spend_log (origin, fingerprint, max(ended_at, sent_at))
    WHERE outcome = 'unknown' AND verdict IN ('charged', 'undecided');
`;

/** What a paid request has cost, or may have cost. A failed task and an answer without a charge free its price. */
export function costOf(row: string): string {
  return `
  CASE
    WHEN ${row}.outcome = 'free' OR ${row}.verdict = 'not_charged' THEN 0
    WHEN ${row}.task = 'failed' THEN ${row}.kept
    WHEN ${row}.outcome = 'accepted' THEN coalesce(${row}.charged, ${row}.price)
    ELSE ${row}.price
  END`;
}

/** The stored sums belong to blocks: a quarter of an hour, by when requests were sent, and this many positions. */
export const timeBlockMs = 900_000;
export const seqBlock = 1_024;

/**
 * Sums of what requests cost, maintained by triggers: a day has too many requests to add them all up for each new
 * request.
 */
const spentTable = `
  CREATE TABLE spent (
    origin TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('time', 'seq')),
    block INTEGER NOT NULL,
    credits INTEGER NOT NULL,
    PRIMARY KEY (origin, fingerprint, kind, block)
  ) WITHOUT ROWID;
`;

const add = (credits: string) => `
    INSERT INTO spent (origin, fingerprint, kind, block, credits)
    VALUES (NEW.origin, NEW.fingerprint, 'time', NEW.sent_at / ${timeBlockMs}, ${credits}),
           (NEW.origin, NEW.fingerprint, 'seq', NEW.intended_seq / ${seqBlock}, ${credits})
    ON CONFLICT (origin, fingerprint, kind, block) DO UPDATE SET credits = spent.credits + excluded.credits;`;

export const accountsTriggers: readonly Trigger[] = [
  { name: "spent_intended", on: "AFTER INSERT ON spend_log", does: add(costOf("NEW")) },
  {
    name: "spent_changed",
    on: "AFTER UPDATE OF outcome, verdict, task, kept, charged ON spend_log",
    when: `${costOf("NEW")} <> ${costOf("OLD")}`,
    does: add(`${costOf("NEW")} - ${costOf("OLD")}`),
  },
];

/** Of version 1. */
export const accountsTables: readonly string[] = [quotaTables, spendLogTables, spentTable];

export interface AccountRow {
  id: number;
  origin: string;
  user_id: string | null;
  limit_minute: number | null;
  limit_day: number | null;
  silent_until: number | null;
  silent_at: number | null;
  strikes: number;
  pacing: Pacing;
  pacing_since: number | null;
  pacing_before: Pacing | null;
  sent: number;
}
