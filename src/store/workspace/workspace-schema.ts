import type { Migration } from "../open.js";

/** The workspace database, step by step. Times are UTC ms, credits are millionths. */
export const workspaceMigrations: readonly Migration[] = [
  (db) => db.exec(tables),
  (db) =>
    db.exec(
      `INSERT INTO transitions VALUES ${legalSteps.map((step) => `('${step.join("','")}')`).join(",")}`,
    ),
  (db) => db.exec(guards),
  // The row's cells as written: JSON pairs of column and text.
  (db) => db.exec("ALTER TABLE items ADD COLUMN cells TEXT NOT NULL DEFAULT '[]'"),
  (db) => db.exec(orders),
  (db) => db.exec(sheets),
  // Where an attempt stands in the account's books, and what was found out of one without an answer.
  (db) =>
    db.exec(`
      ALTER TABLE attempts ADD COLUMN book_entry INTEGER;
      ALTER TABLE attempts ADD COLUMN verdict TEXT CHECK (verdict IN ('not_charged', 'charged', 'undecided'));
      CREATE INDEX attempts_booked ON attempts (book_entry) WHERE book_entry IS NOT NULL;
    `),
  (db) => db.exec(looks),
  // When the addresses of an item's outputs came, and by when to fetch them.
  (db) =>
    db.exec(`
      ALTER TABLE items ADD COLUMN addressed_at INTEGER;
      ALTER TABLE items ADD COLUMN fetch_by INTEGER NOT NULL DEFAULT 0;
    `),
  // When a paid request was sent, by the service's clock as far as it is known: for a day the balance may fall by it. And
  // what it was to cost: its item may be offered for another price since.
  (db) =>
    db.exec(`
      ALTER TABLE attempts ADD COLUMN sent_at INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE attempts ADD COLUMN price INTEGER NOT NULL DEFAULT 0;
      UPDATE attempts SET sent_at = intended_at, price = (SELECT price FROM items WHERE id = item_id);
    `),
];

const tables = `
  CREATE TABLE opened (count INTEGER NOT NULL);
  INSERT INTO opened VALUES (0);

  CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL);

  CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL REFERENCES jobs,
    state TEXT NOT NULL CHECK (state IN ('running', 'paused', 'interrupted', 'finished', 'cancelled')),
    manifest TEXT NOT NULL,
    origin TEXT NOT NULL,
    account_id TEXT NOT NULL,
    edition TEXT NOT NULL,
    out_folder TEXT NOT NULL,
    options TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    exit TEXT,
    requests INTEGER NOT NULL DEFAULT 0
  );

  CREATE TABLE transitions (
    from_state TEXT NOT NULL, event TEXT NOT NULL, to_state TEXT NOT NULL, PRIMARY KEY (from_state, event)
  );

  CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL REFERENCES jobs,
    run_id INTEGER REFERENCES runs,
    key TEXT NOT NULL,
    edition TEXT NOT NULL,
    occurrence INTEGER NOT NULL,
    variant INTEGER NOT NULL,
    position INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    row_number INTEGER NOT NULL,
    row_id TEXT NOT NULL,
    name TEXT NOT NULL,
    model TEXT NOT NULL,
    category TEXT NOT NULL,
    prompt TEXT,
    params TEXT NOT NULL,
    inputs TEXT NOT NULL,
    price INTEGER NOT NULL,
    -- The model with its params: what prices are learned for.
    price_group TEXT NOT NULL,
    state TEXT NOT NULL,
    next_at INTEGER NOT NULL DEFAULT 0,
    looks INTEGER NOT NULL DEFAULT 0,
    -- A ready item whose signed addresses have expired.
    expired INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    failure_kind TEXT,
    note TEXT,
    UNIQUE (job_id, key)
  );
  CREATE INDEX items_due ON items (run_id, state, next_at);
  CREATE INDEX items_order ON items (run_id, state, priority DESC, position);

  CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    item_id INTEGER NOT NULL REFERENCES items,
    run_id INTEGER NOT NULL REFERENCES runs,
    number INTEGER NOT NULL,
    intended_at INTEGER NOT NULL,
    answered_at INTEGER,
    body_sha256 TEXT NOT NULL,
    outcome TEXT,
    status INTEGER,
    message TEXT,
    task_id TEXT,
    external_task_id TEXT,
    charged INTEGER,
    remaining INTEGER,
    created_at TEXT,
    completed_at TEXT,
    -- The task has ended: \`charged\` is final.
    closed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (item_id, number)
  );
  CREATE INDEX attempts_run ON attempts (run_id);
  CREATE UNIQUE INDEX attempts_task ON attempts (task_id) WHERE task_id IS NOT NULL;

  CREATE TABLE outputs (
    item_id INTEGER NOT NULL REFERENCES items,
    number INTEGER NOT NULL,
    url TEXT NOT NULL,
    file TEXT,
    bytes INTEGER,
    sha256 TEXT,
    mime TEXT,
    checked TEXT,
    saved_at INTEGER,
    PRIMARY KEY (item_id, number)
  );

  CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    item_id INTEGER NOT NULL REFERENCES items,
    run_id INTEGER,
    at INTEGER NOT NULL,
    from_state TEXT NOT NULL,
    event TEXT NOT NULL,
    FOREIGN KEY (from_state, event) REFERENCES transitions
  );
  CREATE INDEX events_item ON events (item_id);
`;

/** When the service accepted a task, and when it was last found unfinished; and the items of a group in their order. */
const looks = `
  ALTER TABLE items ADD COLUMN accepted_at INTEGER;
  ALTER TABLE items ADD COLUMN seen_at INTEGER;
  UPDATE items SET accepted_at =
    (SELECT coalesce(answered_at, intended_at) FROM attempts WHERE item_id = items.id ORDER BY number DESC LIMIT 1)
    WHERE state IN ('processing', 'overdue');
  CREATE INDEX items_heads ON items (run_id, state, price_group, priority DESC, position);
`;

/** The legal steps as released. A test holds them to core's table. */
const legalSteps = [
  ["blocked", "released", "planned"],
  ["blocked", "dropped", "dropped"],
  ["planned", "intended", "submitting"],
  ["planned", "dropped", "dropped"],
  ["submitting", "accepted", "processing"],
  ["submitting", "not_sent", "planned"],
  ["submitting", "refused", "planned"],
  ["submitting", "rejected", "failed"],
  ["submitting", "unanswered", "unknown"],
  ["unknown", "not_charged", "planned"],
  ["unknown", "charged", "held"],
  ["unknown", "undecided", "held"],
  ["held", "adopted", "processing"],
  ["held", "resubmit", "planned"],
  ["held", "refetch", "ready"],
  ["held", "skipped", "dropped"],
  ["processing", "completed", "ready"],
  ["processing", "task_failed", "failed"],
  ["processing", "window_passed", "overdue"],
  ["overdue", "completed", "ready"],
  ["overdue", "task_failed", "failed"],
  ["ready", "saved", "archived"],
  ["ready", "url_expired", "ready"],
  ["ready", "unfetchable", "held"],
  ["failed", "retry", "planned"],
  ["archived", "file_lost", "ready"],
  ["dropped", "returned", "planned"],
] as const;

/** The database refuses what the item's life does not allow, whoever asks. */
const guards = `
  CREATE TRIGGER items_begin BEFORE INSERT ON items WHEN NEW.state NOT IN ('planned', 'blocked')
  BEGIN SELECT RAISE(ABORT, 'an item begins as planned or blocked'); END;

  CREATE TRIGGER items_step BEFORE UPDATE OF state ON items
  WHEN NOT EXISTS (SELECT 1 FROM transitions WHERE from_state = OLD.state AND to_state = NEW.state)
  BEGIN SELECT RAISE(ABORT, 'illegal transition of an item'); END;

  CREATE TRIGGER items_return BEFORE UPDATE OF state ON items
  WHEN OLD.state = 'dropped' AND EXISTS (SELECT 1 FROM attempts WHERE item_id = OLD.id)
  BEGIN SELECT RAISE(ABORT, 'a dropped item that was submitted stays dropped'); END;
`;

const orders = `
  -- What a person wants of a run: a JSON document, carried out by the process that holds the workspace.
  CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs,
    given_at INTEGER NOT NULL,
    what TEXT NOT NULL,
    outcome TEXT CHECK (outcome IN ('done', 'refused', 'void')),
    message TEXT,
    settled_at INTEGER
  );
  CREATE INDEX orders_waiting ON orders (id) WHERE outcome IS NULL;
`;

/** Sheets as they were read; items that no row asks for any more; files that were made elsewhere. */
const sheets = `
  CREATE TABLE sheets (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL REFERENCES jobs,
    sha256 TEXT NOT NULL,
    columns TEXT NOT NULL,
    UNIQUE (job_id, sha256)
  );
  CREATE TABLE sheet_rows (
    sheet_id INTEGER NOT NULL REFERENCES sheets,
    position INTEGER NOT NULL,
    number INTEGER NOT NULL,
    cells TEXT NOT NULL,
    keys TEXT NOT NULL,
    problem TEXT,
    PRIMARY KEY (sheet_id, position)
  ) WITHOUT ROWID;
  ALTER TABLE runs ADD COLUMN sheet_id INTEGER REFERENCES sheets;

  ALTER TABLE items ADD COLUMN vanished INTEGER NOT NULL DEFAULT 0;
  UPDATE items SET vanished = 1 WHERE run_id IS NULL AND variant = 1;

  INSERT INTO transitions VALUES ('planned', 'supplied', 'archived'), ('failed', 'supplied', 'archived');
  CREATE TRIGGER items_supplied BEFORE UPDATE OF state ON items
  WHEN OLD.state IN ('planned', 'failed') AND NEW.state = 'archived'
    AND NOT EXISTS (SELECT 1 FROM outputs WHERE item_id = OLD.id AND file IS NOT NULL)
  BEGIN SELECT RAISE(ABORT, 'illegal transition of an item: it has no file'); END;
`;
