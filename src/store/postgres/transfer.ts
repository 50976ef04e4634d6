import { type Sqlite, statements } from "../../sqlite.js";
import { costOf } from "../accounts/accounts-schema.js";
import type { Queries, Script } from "../script.js";
import { storable } from "./dialect.js";

/**
 * Copies a state between SQLite files and PostgreSQL. The workspace's data is copied unchanged, with the sums that
 * triggers maintain. Account data is added to what the target has of other accounts, so its numbers are shifted there;
 * entries of the spend log keep their numbers, because attempts and receipts name them.
 */

/** Parents come before their children. */
const workspaceTables = words(`
  jobs sheets sheet_rows runs orders items parents published attempts outputs picks events
  run_states run_groups run_spending`);
const accountTables = words(`
  accounts keys requests owed charges list_prices left_out durations readings spend_log workspaces same_services
  foreign_known`);
/** Their rows are given numbers. */
const numberedTables = words(`
  jobs sheets runs orders items attempts events accounts requests durations readings spend_log`);
const summedTables = ["items", "attempts"];

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

export interface StateFiles {
  state: Sqlite;
  accounts: Sqlite;
}

/** The names of a workspace in the spend log: in the old place and in the new one. */
export interface Renamed {
  from: string;
  to: string;
}

/** How many rows were copied, for each table of the workspace and for the account data. */
export type Copied = Record<string, number>;

type Row = Record<string, unknown>;
const rowsAtOnce = 2_000;

/** Whether a schema has no workspace and no account yet. */
export function* isEmpty(sql: Queries): Script<boolean> {
  const found = yield* sql(
    "SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM accounts) + (SELECT count(*) FROM published)",
  ).value();
  return Number(found) === 0;
}

/** Removes all that a schema has, for a migration that was cut short. */
export function* empty(sql: Queries): Script<void> {
  const tables = [...workspaceTables, ...accountTables, "spent"];
  yield* sql(`TRUNCATE ${tables.join(", ")}`).run();
  yield* sql("UPDATE sequence SET last = 0").run();
}

/** Fills an empty schema from files: the workspace, and the accounts that its runs were made with. */
export function* toServer({ state, accounts }: StateFiles, sql: Queries, renamed: Renamed): Script<Copied> {
  const copied: Copied = {};
  for (const table of summedTables) yield* sql(`ALTER TABLE ${table} DISABLE TRIGGER USER`).run();
  for (const table of workspaceTables)
    copied[table] = yield* filled(sql, table, typesIn(state, table), rowsOf(state, table));
  for (const table of summedTables) yield* sql(`ALTER TABLE ${table} ENABLE TRIGGER USER`).run();
  const used = statements(state)("SELECT DISTINCT origin, account_id FROM runs").all() as {
    origin: string;
    account_id: string;
  }[];
  Object.assign(copied, yield* joinAccounts(accounts, sql, renamed, used.map(accountName)));
  for (const table of numberedTables)
    yield* sql(
      `SELECT setval(pg_get_serial_sequence('${table}', 'id'), max(1, (SELECT coalesce(max(id), 0) FROM ${table}), ?))`,
    ).get(table === "requests" ? numbered(accounts) : 1);
  yield* check(sql, copied);
  return copied;
}

/** Fills new files from a schema. */
export function* fromServer(sql: Queries, { state, accounts }: StateFiles): Script<Copied> {
  const copied: Copied = {};
  for (const [db, tables] of [
    [state, workspaceTables],
    [accounts, [...accountTables, "spent"]],
  ] as const) {
    const triggers = withoutTriggers(db);
    for (const table of tables) {
      yield* sql(`DECLARE leaving CURSOR FOR SELECT * FROM ${table}`).run();
      const columns = [...typesIn(db, table).keys()];
      const insert = db.prepare(
        `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
      );
      let written = 0;
      for (;;) {
        const rows = (yield* sql(`FETCH ${rowsAtOnce} FROM leaving`).all()) as Row[];
        db.transaction(() => {
          for (const row of rows) {
            const { changes } = insert.run(columns.map((column) => row[column]));
            written += changes;
          }
        })();
        if (rows.length < rowsAtOnce) break;
      }
      copied[table] = written;
      yield* sql("CLOSE leaving").run();
    }
    for (const text of triggers) db.exec(text);
  }
  const last = (yield* sql("SELECT last FROM sequence").value()) as number;
  accounts.exec(`UPDATE sequence SET last = ${Math.floor(last)}`);
  return copied;
}

/** The triggers of a file, which is without them from then on. */
function withoutTriggers(db: Sqlite): string[] {
  const triggers = statements(db)("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as {
    name: string;
    sql: string;
  }[];
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  return triggers.map(({ sql }) => sql);
}

/** The state has been used on both sides since, so neither side has everything. */
export class UsedOnBothSides extends Error {
  override readonly name = "UsedOnBothSides";
}

/** What some keys have cost; the parameter is a JSON array of their names. */
const costOfKeys = `SELECT coalesce(sum(credits), 0) FROM spent
  WHERE kind = 'time' AND (origin || ' ' || fingerprint) IN (SELECT value FROM json_each(?))`;

/**
 * Adds accounts to those that a place already has. If it has one of them, its data is replaced if the source knows all
 * its paid requests; otherwise throws UsedOnBothSides. `only` names accounts; null means all.
 */
export function* joinAccounts(
  source: Sqlite,
  sql: Queries,
  renamed: Renamed,
  only: readonly string[] | null,
): Script<Copied> {
  const accounts = [...rowsOf(source, "accounts")].filter(
    ({ origin, user_id }) => only === null || only.includes(accountName({ origin, account_id: user_id })),
  );
  const ids = new Set(accounts.map(({ id }) => id));
  const keys = [...rowsOf(source, "keys")].filter((row) => ids.has(row["account_id"]));
  const keyNames = new Set(keys.map(keyName));
  const unknownRequests: Row[] = [];
  for (const account of accounts) unknownRequests.push(...(yield* replaced(source, sql, account)));
  const last = yield* lastNumbers(sql);
  const known = (yield* sql("SELECT origin, model, price_group, ms, at FROM durations").all()) as Row[];
  const durations = new Set(known.map(durationName));
  const origins = new Set(accounts.map(({ origin }) => origin));
  const copied: Copied = {};
  for (const { table, keep, change, clause } of joinedTables({
    isOfAccount: (row) => ids.has(row["account_id"]),
    isOfKey: (row) => keyNames.has(keyName(row)),
    isOfOrigin: (row) => origins.has(row["origin"]),
    isAccount: ({ id }) => ids.has(id),
    isKnownDuration: (row) => durations.has(durationName(row)),
    last,
    renamed,
  }))
    copied[table] = yield* filled(
      sql,
      table,
      typesIn(source, table),
      map(rowsOf(source, table), keep, change),
      clause,
    );
  const withoutId = new Map([...typesIn(source, "requests")].filter(([column]) => column !== "id"));
  const counted = unknownRequests.map((row) => shifted(row, { account_id: last.account }));
  yield* filled(sql, "requests", withoutId, counted);
  const lastOfSource = statements(source)("SELECT last FROM sequence").value() as number;
  yield* sql("UPDATE sequence SET last = last + ?").run(lastOfSource);
  const names = JSON.stringify([...keyNames]);
  const cost = statements(source)(costOfKeys).value(names);
  const summed = yield* sql(costOfKeys).value(names);
  if (Number(cost) !== Number(summed))
    throw new Error(`the spend log was not copied whole: expected ${cost} millionths, got ${summed}`);
  return copied;
}

/** The last numbers that a place has given, so that what joins it gets later ones. */
interface LastNumbers {
  account: number;
  reading: number;
  request: number;
  duration: number;
  seq: number;
}

function* lastNumbers(sql: Queries): Script<LastNumbers> {
  const last = function* (table: string): Script<number> {
    return Number((yield* sql(`SELECT coalesce(max(id), 0) FROM ${table}`).value()) ?? 0);
  };
  return {
    account: yield* last("accounts"),
    reading: yield* last("readings"),
    request: yield* last("requests"),
    duration: yield* last("durations"),
    seq: Number(yield* sql("SELECT last FROM sequence").value()),
  };
}

/** Which rows of a table join, and how they are changed; `clause` is for rows that the place already has. */
interface JoinedTable {
  table: string;
  keep: (row: Row) => boolean;
  change: (row: Row) => Row;
  clause?: string;
}

/** Which rows of the source belong to the accounts that join, and what their numbers and names become. */
interface Joining {
  isAccount: (row: Row) => boolean;
  isOfAccount: (row: Row) => boolean;
  isOfKey: (row: Row) => boolean;
  isOfOrigin: (row: Row) => boolean;
  /** Whether the place has this duration already. */
  isKnownDuration: (row: Row) => boolean;
  last: LastNumbers;
  renamed: Renamed;
}

/** Parents come before their children. */
function joinedTables({
  isAccount,
  isOfAccount,
  isOfKey,
  isOfOrigin,
  isKnownDuration,
  last,
  renamed: { from, to },
}: Joining): readonly JoinedTable[] {
  const unchanged = (row: Row) => row;
  const newName = (text: unknown) =>
    text === from || String(text).startsWith(`${from} run `) ? to + String(text).slice(from.length) : text;
  const later = (row: Row, ...columns: string[]) => {
    const given = columns.filter((column) => row[column] !== null && row[column] !== 0);
    return shifted(row, Object.fromEntries(given.map((column) => [column, last.seq])));
  };
  return [
    { table: "accounts", keep: isAccount, change: (row) => shifted(row, { id: last.account }) },
    {
      table: "keys",
      keep: isOfAccount,
      change: (row) => shifted(row, { account_id: last.account, baseline: last.reading }),
    },
    {
      table: "requests",
      keep: isOfAccount,
      change: (row) => shifted(row, { id: last.request, account_id: last.account }),
    },
    {
      table: "owed",
      keep: isOfAccount,
      change: (row) => ({ ...shifted(row, { account_id: last.account }), run: newName(row["run"]) }),
    },
    {
      table: "charges",
      keep: isOfOrigin,
      change: unchanged,
      clause:
        "ON CONFLICT (origin, price_group) DO UPDATE SET highest = max(charges.highest, excluded.highest)",
    },
    {
      table: "list_prices",
      keep: isOfOrigin,
      change: unchanged,
      clause: "ON CONFLICT (origin, model) DO UPDATE SET price = excluded.price",
    },
    {
      table: "left_out",
      keep: isOfOrigin,
      change: unchanged,
      clause: "ON CONFLICT (origin, model, param) DO NOTHING",
    },
    {
      table: "workspaces",
      keep: ({ name }) => name !== from,
      change: unchanged,
      clause: "ON CONFLICT (name) DO NOTHING",
    },
    {
      table: "same_services",
      keep: () => true,
      change: unchanged,
      clause: "ON CONFLICT (address) DO NOTHING",
    },
    {
      table: "foreign_known",
      keep: isOfKey,
      change: (row) => ({ ...row, workspace: newName(row["workspace"]) }),
      clause:
        "ON CONFLICT (workspace, origin, fingerprint) DO UPDATE SET credits = excluded.credits, at = excluded.at",
    },
    {
      table: "durations",
      keep: (row) => isOfOrigin(row) && !isKnownDuration(row),
      change: (row) => shifted(row, { id: last.duration }),
    },
    {
      table: "readings",
      keep: isOfKey,
      change: (row) => shifted(later(row, "seq"), { id: last.reading }),
    },
    // The trigger adds up what they cost.
    {
      table: "spend_log",
      keep: isOfKey,
      change: (row) => ({
        ...later(row, "intended_seq", "repeated_seq", "ended_seq", "polled_seq", "verdict_seq"),
        workspace: newName(row["workspace"]),
      }),
    },
  ];
}

/** A row with other numbers in these columns; what is null stays so. */
function shifted(row: Row, by: Readonly<Record<string, number>>): Row {
  const changed = { ...row };
  for (const [column, more] of Object.entries(by))
    if (row[column] !== null) changed[column] = Number(row[column]) + more;
  return changed;
}

/** Removes an account that the source also has. Returns its requests that the source does not know: they count on. */
function* replaced(source: Sqlite, sql: Queries, account: Row): Script<Row[]> {
  const { origin, user_id: user } = account;
  const id = yield* sql("SELECT id FROM accounts WHERE origin = ? AND user_id = ?").value(origin, user);
  if (id === undefined) return [];
  const ofKeys = "(origin, fingerprint) IN (SELECT origin, fingerprint FROM keys WHERE account_id = ?)";
  const paid = (yield* sql(`SELECT id FROM spend_log WHERE ${ofKeys}`).all(id)) as { id: number }[];
  const isKnown = source.prepare("SELECT 1 FROM spend_log WHERE id = ?");
  const strange = paid.filter((entry) => isKnown.get(entry.id) === undefined).length;
  if (strange > 0)
    throw new UsedOnBothSides(
      `${strange} paid requests of user ${user} at ${origin} were made there and are not known here`,
    );
  const requests = (yield* sql(
    "SELECT fingerprint, endpoint, sent_at, ended_at FROM requests WHERE account_id = ?",
  ).all(id)) as Row[];
  const same = source.prepare(
    "SELECT 1 FROM requests WHERE endpoint = ? AND sent_at = ? AND ended_at = ? AND account_id = ?",
  );
  const kept = requests.filter(
    (row) => same.get(row["endpoint"], row["sent_at"], row["ended_at"], account["id"]) === undefined,
  );
  for (const table of ["spend_log", "readings", "spent"])
    yield* sql(`DELETE FROM ${table} WHERE ${ofKeys}`).run(id);
  for (const table of ["requests", "owed", "keys"])
    yield* sql(`DELETE FROM ${table} WHERE account_id = ?`).run(id);
  yield* sql("DELETE FROM accounts WHERE id = ?").run(id);
  return kept.map((row) => ({ ...row, account_id: account["id"] }));
}

/** Inserts rows, many at a time, in SQL that both databases understand. */
function* filled(
  sql: Queries,
  table: string,
  types: ReadonlyMap<string, string>,
  rows: Iterable<Row>,
  clause = "",
): Script<number> {
  const values = [...types].map(([column, type]) =>
    type === "INTEGER" ? `CAST(value ->> '${column}' AS INTEGER)` : `value ->> '${column}'`,
  );
  const insert = sql(
    `INSERT INTO ${table} (${[...types.keys()].join(", ")}) SELECT ${values.join(", ")} FROM json_each(?) WHERE TRUE ${clause}`,
  );
  let number = 0;
  let some: Row[] = [];
  for (const row of rows) {
    some.push(row);
    if (some.length < rowsAtOnce) continue;
    yield* insert.run(jsonOf(some));
    number += some.length;
    some = [];
  }
  if (some.length > 0) yield* insert.run(jsonOf(some));
  return number + some.length;
}

/** SQLite keeps fractions in whole-number columns, such as of a time by the service's clock; PostgreSQL rounds them. */
function jsonOf(rows: readonly Row[]): string {
  return JSON.stringify(rows, (_, value) =>
    typeof value === "number" ? Math.round(value) : storable(value),
  );
}

/** Counts what has arrived, and checks the sums that were copied. Throws if something is missing. */
function* check(sql: Queries, copied: Copied): Script<void> {
  for (const [table, rows] of Object.entries(copied)) {
    const found = Number(yield* sql(`SELECT count(*) FROM ${table}`).value());
    if (found !== rows) throw new Error(`${table} was not copied whole: expected ${rows} rows, got ${found}`);
  }
  for (const wrong of wrongSums) {
    const found = yield* sql(wrong).get();
    if (found !== undefined) throw new Error(`the sums were not copied right: ${JSON.stringify(found)}`);
  }
}

/** What the maintained sums have beyond a count, and what they lack. */
const wrongSums = [
  [
    "SELECT run_id, state, items FROM run_states WHERE items <> 0",
    "SELECT run_id, state, count(*) FROM items WHERE run_id IS NOT NULL GROUP BY run_id, state",
  ],
  [
    "SELECT run_id, sum(charged) FROM run_spending GROUP BY run_id",
    "SELECT run_id, sum(closed * coalesce(charged, 0)) FROM attempts GROUP BY run_id",
  ],
  [
    "SELECT origin, fingerprint, sum(credits) FROM spent WHERE kind = 'time' GROUP BY origin, fingerprint",
    `SELECT origin, fingerprint, sum(${costOf("spend_log")}) FROM spend_log GROUP BY origin, fingerprint`,
  ],
].map(
  ([kept, counted]) =>
    `SELECT * FROM (${kept} EXCEPT ${counted}) AS more UNION ALL SELECT * FROM (${counted} EXCEPT ${kept}) AS less`,
);

/** Counts the rows of copied files, and checks the sums that files have too. Throws if something is missing. */
export function* checkFiles(sql: Queries, copied: Copied): Script<void> {
  for (const table of workspaceTables) {
    const found = Number(yield* sql(`SELECT count(*) FROM ${table}`).value());
    if (found !== copied[table])
      throw new Error(`${table} was not copied whole: expected ${copied[table]} rows, got ${found}`);
  }
  for (const wrong of wrongSums.slice(0, 2)) {
    const found = yield* sql(wrong).get();
    if (found !== undefined) throw new Error(`the sums were not copied right: ${JSON.stringify(found)}`);
  }
}

function* rowsOf(db: Sqlite, table: string): Generator<Row> {
  for (const row of db.prepare(`SELECT * FROM ${table}`).iterate()) yield row as Row;
}

function* map(rows: Iterable<Row>, keep: (row: Row) => boolean, change: (row: Row) => Row): Generator<Row> {
  for (const row of rows) if (keep(row)) yield change(row);
}

/** The columns of a table with their types. */
function typesIn(db: Sqlite, table: string): Map<string, string> {
  const columns = statements(db)("SELECT name, type FROM pragma_table_info(?)").all(table) as {
    name: string;
    type: string;
  }[];
  return new Map(columns.map(({ name, type }) => [name, type]));
}

/** The last number of a request, which is never used again. */
function numbered(accounts: Sqlite): number {
  return Number(statements(accounts)("SELECT seq FROM sqlite_sequence WHERE name = 'requests'").value() ?? 1);
}

function accountName({ origin, account_id: user }: { origin: unknown; account_id: unknown }): string {
  return `${origin} ${user}`;
}

function keyName({ origin, fingerprint }: Row): string {
  return `${origin} ${fingerprint}`;
}

function durationName(row: Row): string {
  return JSON.stringify([row["origin"], row["model"], row["price_group"], row["ms"], row["at"]]);
}
