import { transitionList } from "../../core/item.js";
import type { Migration } from "../open.js";
import { sqliteTriggers, type Trigger } from "../triggers.js";

/** The workspace database, one function for each version. Times are UTC ms, credits are millionths. */
export const workspaceMigrations: readonly Migration[] = [
  (db) => {
    db.exec(workspaceTables);
    db.exec(knownTransitions());
    db.exec(sqliteTriggers(workspaceTriggers));
  },
  (db) => db.exec(givenUpAndAccepted),
];

/** States that few items of a run have at the same time, and that are queried often. */
const indexedStates = [
  "blocked",
  "submitting",
  "unknown",
  "held",
  "processing",
  "overdue",
  "ready",
  "failed",
];

export const workspaceTables = `
  CREATE TABLE opened (count INTEGER NOT NULL);
  INSERT INTO opened VALUES (0);

  CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL);

  -- A sheet as a run read it. The runs of a job share a sheet that has not changed.
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

  CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL REFERENCES jobs,
    sheet_id INTEGER REFERENCES sheets,
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
    -- Why it ended, as JSON; recorded with the exit.
    ending TEXT,
    requests INTEGER NOT NULL DEFAULT 0,
    -- 1: the job's files have the names that the run's rows give them.
    arranged INTEGER NOT NULL DEFAULT 0
  );

  -- A request to a running run: a JSON document, carried out by the process that holds the workspace.
  CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs,
    given_at INTEGER NOT NULL,
    what TEXT NOT NULL,
    outcome TEXT CHECK (outcome IN ('done', 'refused', 'void')),
    message TEXT,
    ended_at INTEGER
  );
  CREATE INDEX orders_waiting ON orders (id) WHERE outcome IS NULL;

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
    -- Of a released item, higher by 10000 than its row says.
    priority INTEGER NOT NULL,
    row_number INTEGER NOT NULL,
    row_id TEXT NOT NULL,
    name TEXT NOT NULL,
    model TEXT NOT NULL,
    category TEXT NOT NULL,
    prompt TEXT,
    params TEXT NOT NULL,
    inputs TEXT NOT NULL,
    -- JSON: the hashes of the local files among the inputs, as they were planned.
    files TEXT,
    -- The row's cells as written: JSON pairs of column and text.
    cells TEXT NOT NULL DEFAULT '[]',
    price INTEGER NOT NULL,
    -- The model with its params: prices are learned for it.
    price_group TEXT NOT NULL,
    state TEXT NOT NULL,
    next_at INTEGER NOT NULL DEFAULT 0,
    polls INTEGER NOT NULL DEFAULT 0,
    -- When the service accepted the task, and when a poll last found it unfinished.
    accepted_at INTEGER,
    seen_at INTEGER,
    -- When the output URLs last arrived, and the time by which to fetch them.
    addressed_at INTEGER,
    fetch_by INTEGER NOT NULL DEFAULT 0,
    -- 1: a ready item whose signed URLs have expired.
    expired INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    failure_kind TEXT,
    note TEXT,
    -- 1: a blocked item whose local file could not be published.
    unpublished INTEGER NOT NULL DEFAULT 0,
    -- A person's decision about the files of an item that waits for one; null where nobody is asked. No rebuild restores it.
    approval TEXT CHECK (approval IN ('waiting', 'approved', 'rejected')),
    -- 1: no row of the manifest asks for the item any more.
    vanished INTEGER NOT NULL DEFAULT 0,
    UNIQUE (job_id, key)
  );
  -- The items of a job in the order of their numbers, page by page.
  CREATE INDEX items_job ON items (job_id);
  CREATE INDEX items_run ON items (run_id);
  -- People name items by it.
  CREATE INDEX items_row ON items (row_id);
  CREATE INDEX items_vanished ON items (job_id) WHERE vanished = 1;
  CREATE INDEX items_approval ON items (run_id, approval) WHERE approval IS NOT NULL;
  -- A transition writes only the indexes that the item enters or leaves. The states are joined by OR, because SQLite uses
  -- the index for a query that names one of them, and would not for a list.
  CREATE INDEX items_open ON items (state, run_id, next_at) WHERE ${indexedStates.map((state) => `state = '${state}'`).join(" OR ")};
  CREATE INDEX items_order ON items (run_id, priority DESC, position) WHERE state = 'planned';
  -- The items of a price group in their order.
  CREATE INDEX items_heads ON items (run_id, price_group, priority DESC, position) WHERE state = 'planned';

  -- The outputs of other items of the job that an item takes as inputs. The field 'canary' is no input: the item waits
  -- until the other one is archived.
  CREATE TABLE parents (
    item_id INTEGER NOT NULL REFERENCES items,
    field TEXT NOT NULL,
    parent_key TEXT NOT NULL,
    output INTEGER NOT NULL,
    PRIMARY KEY (item_id, field)
  ) WITHOUT ROWID;
  CREATE INDEX parents_key ON parents (parent_key);
  CREATE INDEX parents_canary ON parents (item_id) WHERE field = 'canary';

  -- Where contents of local inputs were published, and until when (UTC ms) that address is good.
  CREATE TABLE published (
    target TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    url TEXT NOT NULL,
    until INTEGER,
    PRIMARY KEY (target, sha256)
  ) WITHOUT ROWID;

  CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    item_id INTEGER NOT NULL REFERENCES items,
    run_id INTEGER NOT NULL REFERENCES runs,
    number INTEGER NOT NULL,
    -- The price expected when the request was sent; the item's price may change later.
    price INTEGER NOT NULL,
    -- The request's row in the spend log.
    spend_log_id INTEGER,
    intended_at INTEGER NOT NULL,
    -- By the service's clock as far as it is known: daily caps count by it.
    sent_at INTEGER NOT NULL,
    answered_at INTEGER,
    body_sha256 TEXT NOT NULL,
    outcome TEXT,
    verdict TEXT CHECK (verdict IN ('not_charged', 'charged', 'undecided')),
    status INTEGER,
    message TEXT,
    task_id TEXT,
    external_task_id TEXT,
    charged INTEGER,
    remaining INTEGER,
    created_at TEXT,
    completed_at TEXT,
    -- 1: the task has ended, so \`charged\` is final.
    closed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (item_id, number)
  );
  CREATE INDEX attempts_run ON attempts (run_id);
  CREATE INDEX attempts_unanswered ON attempts (item_id) WHERE outcome = 'unanswered';
  CREATE UNIQUE INDEX attempts_task ON attempts (task_id) WHERE task_id IS NOT NULL;
  CREATE INDEX attempts_spend_log ON attempts (spend_log_id) WHERE spend_log_id IS NOT NULL;

  CREATE TABLE outputs (
    item_id INTEGER NOT NULL REFERENCES items,
    number INTEGER NOT NULL,
    url TEXT NOT NULL,
    file TEXT,
    -- The output folder of the run that saved the file: another run may have paid, and have another folder by now.
    out_folder TEXT,
    -- The bucket that has the file; null for the disk.
    bucket TEXT,
    bytes INTEGER,
    sha256 TEXT,
    mime TEXT,
    checked TEXT,
    saved_at INTEGER,
    PRIMARY KEY (item_id, number)
  ) WITHOUT ROWID;

  -- A person's marks. No rebuild restores them: nothing else records them.
  CREATE TABLE picks (item_id INTEGER PRIMARY KEY REFERENCES items);

  CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    item_id INTEGER NOT NULL REFERENCES items,
    run_id INTEGER,
    -- The number of the item's newest attempt then; null before it had one.
    attempt INTEGER,
    at INTEGER NOT NULL,
    from_state TEXT NOT NULL,
    event TEXT NOT NULL,
    FOREIGN KEY (from_state, event) REFERENCES transitions
  );
  CREATE INDEX events_item ON events (item_id);

  -- Sums of items and attempts that triggers keep, because a run asks for them at each turn.
  CREATE TABLE run_states (
    run_id INTEGER NOT NULL, state TEXT NOT NULL, items INTEGER NOT NULL, PRIMARY KEY (run_id, state)
  ) WITHOUT ROWID;
  CREATE TABLE run_groups (
    run_id INTEGER NOT NULL,
    price_group TEXT NOT NULL,
    priority INTEGER NOT NULL,
    price INTEGER NOT NULL,
    model TEXT NOT NULL,
    category TEXT NOT NULL,
    -- How many of its items are planned. The line stays when none is: it also says what the run's items are.
    items INTEGER NOT NULL,
    -- The highest charge for an item of the group that was seen after the line was made.
    charged INTEGER,
    PRIMARY KEY (run_id, price_group, priority, price)
  ) WITHOUT ROWID;
  CREATE TABLE run_spending (
    run_id INTEGER NOT NULL,
    model TEXT NOT NULL,
    charged INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    at_service INTEGER NOT NULL,
    tasks INTEGER NOT NULL,
    in_doubt INTEGER NOT NULL,
    PRIMARY KEY (run_id, model)
  ) WITHOUT ROWID;
`;

/** The legal transitions; those that a database of an earlier version has stay. */
export function knownTransitions(): string {
  const rows = transitionList.map(({ from, event, to }) => `('${from}','${event}','${to}')`);
  return `INSERT INTO transitions VALUES ${rows.join(",")} ON CONFLICT DO NOTHING;`;
}

/** Items are given up after so many lost requests, and a person may accept outputs that no check can prove. */
export const givenUpAndAccepted = `
  ${knownTransitions()}
  ALTER TABLE items ADD COLUMN accepts INTEGER NOT NULL DEFAULT 0;`;

/** The database itself refuses a transition that an item's life does not allow. */
const guards: readonly Trigger[] = [
  {
    name: "items_begin",
    on: "BEFORE INSERT ON items",
    when: "NEW.state NOT IN ('planned', 'blocked')",
    does: { refuse: "an item begins as planned or blocked" },
  },
  {
    name: "items_step",
    on: "BEFORE UPDATE OF state ON items",
    when: "NOT EXISTS (SELECT 1 FROM transitions WHERE from_state = OLD.state AND to_state = NEW.state)",
    does: { refuse: "illegal transition of an item" },
  },
  {
    name: "items_return",
    on: "BEFORE UPDATE OF state ON items",
    when: "OLD.state = 'dropped' AND EXISTS (SELECT 1 FROM attempts WHERE item_id = OLD.id)",
    does: { refuse: "a dropped item that was submitted stays dropped" },
  },
  {
    name: "items_supplied",
    on: "BEFORE UPDATE OF state ON items",
    when: `OLD.state IN ('planned', 'failed') AND NEW.state = 'archived'
      AND NOT EXISTS (SELECT 1 FROM outputs WHERE item_id = OLD.id AND file IS NOT NULL)`,
    does: { refuse: "illegal transition of an item: it has no file" },
  },
];

const leaves = `
    UPDATE run_states SET items = items - 1 WHERE run_id = OLD.run_id AND state = OLD.state;
    UPDATE run_groups SET items = items - 1 WHERE OLD.state = 'planned' AND run_id = OLD.run_id
      AND price_group = OLD.price_group AND priority = OLD.priority AND price = OLD.price;`;
const joins = `
    INSERT INTO run_states (run_id, state, items) SELECT NEW.run_id, NEW.state, 1 WHERE NEW.run_id IS NOT NULL
      ON CONFLICT (run_id, state) DO UPDATE SET items = run_states.items + 1;
    INSERT INTO run_groups (run_id, price_group, priority, price, model, category, items)
      SELECT NEW.run_id, NEW.price_group, NEW.priority, NEW.price, NEW.model, NEW.category,
        CASE WHEN NEW.state = 'planned' THEN 1 ELSE 0 END
      WHERE NEW.run_id IS NOT NULL
      ON CONFLICT (run_id, price_group, priority, price) DO UPDATE SET items = run_groups.items + 1
        WHERE NEW.state = 'planned';`;

/** Maintains the sums for all rows of a statement at once: unchanged rows are subtracted and added again. */
const counted = "run_id, state, price_group, priority, price, model, category";
const came = `SELECT ${counted}, 1 AS n FROM come WHERE run_id IS NOT NULL`;
const wentAndCame = `${came} UNION ALL SELECT ${counted}, -1 FROM gone WHERE run_id IS NOT NULL`;
const countInAll = (rows: string) => `
    INSERT INTO run_states (run_id, state, items)
      SELECT run_id, state, sum(n) FROM (${rows}) r GROUP BY run_id, state HAVING sum(n) <> 0
      ON CONFLICT (run_id, state) DO UPDATE SET items = run_states.items + excluded.items;
    INSERT INTO run_groups (run_id, price_group, priority, price, model, category, items)
      SELECT run_id, price_group, priority, price, min(model), min(category), coalesce(sum(n) FILTER (WHERE state = 'planned'), 0)
      FROM (${rows}) r GROUP BY run_id, price_group, priority, price
      HAVING coalesce(sum(n) FILTER (WHERE state = 'planned'), 0) <> 0 OR NOT EXISTS (SELECT 1 FROM run_groups g
        WHERE (g.run_id, g.price_group, g.priority, g.price) = (r.run_id, r.price_group, r.priority, r.price))
      ON CONFLICT (run_id, price_group, priority, price) DO UPDATE SET items = run_groups.items + excluded.items;`;

/** What an attempt adds to the sums of its run. */
const partsOf = (a: "OLD" | "NEW") => {
  const isAtService = `${a}.closed = 0 AND coalesce(${a}.outcome, '') = 'accepted'`;
  const isInDoubt = `${a}.closed = 0 AND coalesce(${a}.verdict, '') <> 'not_charged' AND coalesce(${a}.outcome, 'unanswered') = 'unanswered'`;
  const atService = `CASE WHEN ${isAtService} THEN coalesce(${a}.charged, ${a}.price) ELSE 0 END`;
  return {
    charged: `${a}.closed * coalesce(${a}.charged, 0)`,
    pending: `${atService} + CASE WHEN ${isInDoubt} THEN ${a}.price ELSE 0 END`,
    at_service: atService,
    tasks: `CASE WHEN ${isAtService} THEN 1 ELSE 0 END`,
    in_doubt: `CASE WHEN ${isInDoubt} THEN 1 ELSE 0 END`,
  };
};
const parts = Object.entries(partsOf("NEW"));
const before = partsOf("OLD") as Readonly<Record<string, string>>;
const modelOf = "(SELECT model FROM items WHERE id = NEW.item_id)";
const learns = `
    UPDATE run_groups SET charged = NEW.charged
    WHERE NEW.charged IS NOT NULL AND run_id = NEW.run_id
      AND price_group = (SELECT price_group FROM items WHERE id = NEW.item_id) AND (charged IS NULL OR charged < NEW.charged);`;

/** An attempt never changes its run, and an item never changes its model. */
const sums: readonly Trigger[] = [
  { name: "items_added", on: "AFTER INSERT ON items", does: joins, inAll: countInAll(came) },
  {
    name: "items_changed",
    on: "AFTER UPDATE OF run_id, state, price, priority ON items",
    when: "(OLD.run_id, OLD.state, OLD.price, OLD.priority) IS DISTINCT FROM (NEW.run_id, NEW.state, NEW.price, NEW.priority)",
    does: `${leaves} ${joins}`,
    inAll: countInAll(wentAndCame),
  },
  {
    name: "attempts_added",
    on: "AFTER INSERT ON attempts",
    does: `
    INSERT INTO run_spending (run_id, model, ${parts.map(([sum]) => sum).join(", ")})
    VALUES (NEW.run_id, ${modelOf}, ${parts.map(([, part]) => part).join(", ")})
    ON CONFLICT (run_id, model) DO UPDATE SET ${parts.map(([sum]) => `${sum} = run_spending.${sum} + excluded.${sum}`).join(", ")};
    ${learns}`,
  },
  {
    name: "attempts_changed",
    on: "AFTER UPDATE OF price, closed, outcome, verdict, charged ON attempts",
    does: `
    UPDATE run_spending SET ${parts.map(([sum, part]) => `${sum} = ${sum} + (${part}) - (${before[sum]})`).join(", ")}
    WHERE run_id = NEW.run_id AND model = ${modelOf};
    ${learns}`,
  },
];

export const workspaceTriggers: readonly Trigger[] = [...guards, ...sums];
