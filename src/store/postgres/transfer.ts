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

/**
 * Adds accounts to those that a place already has. If it has one of them, its data is replaced if the source knows all
 * its paid requests; otherwise throws UsedOnBothSides. `only` names accounts; null means all.
 */
export function* joinAccounts(
  source: Sqlite,
  sql: Queries,
  { from, to }: Renamed,
  only: readonly string[] | null,
): Script<Copied> {
  const all = [...rowsOf(source, "accounts")];
  const accounts =
    only === null
      ? all
      : all.filter((row) =>
          only.includes(accountName({ origin: row["origin"], account_id: row["user_id"] })),
        );
  const ids = new Set(accounts.map(({ id }) => id));
  const origins = new Set(accounts.map(({ origin }) => origin));
  const keys = [...rowsOf(source, "keys")].filter((row) => ids.has(row["account_id"]));
  const keyNames = new Set(keys.map(keyName));
  const isOfAccount = (row: Row) => ids.has(row["account_id"]);
  const isOfKey = (row: Row) => keyNames.has(keyName(row));
  const kept: Row[] = [];
  for (const account of accounts) kept.push(...(yield* replaced(source, sql, account)));
  const most = function* (table: string): Script<number> {
    return Number((yield* sql(`SELECT coalesce(max(id), 0) FROM ${table}`).value()) ?? 0);
  };
  const numbers = {
    account: yield* most("accounts"),
    reading: yield* most("readings"),
    request: yield* most("requests"),
    duration: yield* most("durations"),
  };
  const seq = Number(yield* sql("SELECT last FROM sequence").value());
  const later = (row: Row, ...columns: string[]): Row => {
    const shifted = { ...row };
    for (const column of columns)
      if (row[column] !== null && row[column] !== 0) shifted[column] = Number(row[column]) + seq;
    return shifted;
  };
  const shift = (value: unknown, by: number) => (value === null ? null : Number(value) + by);
  const named = (text: unknown) =>
    text === from || String(text).startsWith(`${from} run `) ? to + String(text).slice(from.length) : text;
  const known = function* (): Script<Set<string>> {
    const rows = (yield* sql("SELECT origin, model, price_group, ms, at FROM durations").all()) as Row[];
    return new Set(rows.map(durationName));
  };
  const durations = yield* known();
  const parts: readonly (readonly [table: string, rows: Iterable<Row>, clause?: string])[] = [
    ["accounts", accounts.map((row) => ({ ...row, id: shift(row["id"], numbers.account) }))],
    [
      "keys",
      keys.map((row) => ({
        ...row,
        account_id: shift(row["account_id"], numbers.account),
        baseline: shift(row["baseline"], numbers.reading),
      })),
    ],
    [
      "requests",
      map(rowsOf(source, "requests"), isOfAccount, (row) => ({
        ...row,
        id: shift(row["id"], numbers.request),
        account_id: shift(row["account_id"], numbers.account),
      })),
    ],
    [
      "owed",
      map(rowsOf(source, "owed"), isOfAccount, (row) => ({
        ...row,
        account_id: shift(row["account_id"], numbers.account),
        run: named(row["run"]),
      })),
    ],
    [
      "charges",
      map(
        rowsOf(source, "charges"),
        (row) => origins.has(row["origin"]),
        (row) => row,
      ),
      "ON CONFLICT (origin, price_group) DO UPDATE SET highest = max(charges.highest, excluded.highest)",
    ],
    [
      "list_prices",
      map(
        rowsOf(source, "list_prices"),
        (row) => origins.has(row["origin"]),
        (row) => row,
      ),
      "ON CONFLICT (origin, model) DO UPDATE SET price = excluded.price",
    ],
    [
      "left_out",
      map(
        rowsOf(source, "left_out"),
        (row) => origins.has(row["origin"]),
        (row) => row,
      ),
      "ON CONFLICT (origin, model, param) DO NOTHING",
    ],
    [
      "workspaces",
      map(
        rowsOf(source, "workspaces"),
        (row) => row["name"] !== from,
        (row) => row,
      ),
      "ON CONFLICT (name) DO NOTHING",
    ],
    ["same_services", rowsOf(source, "same_services"), "ON CONFLICT (address) DO NOTHING"],
    [
      "foreign_known",
      map(rowsOf(source, "foreign_known"), isOfKey, (row) => ({
        ...row,
        workspace: named(row["workspace"]),
      })),
      "ON CONFLICT (workspace, origin, fingerprint) DO UPDATE SET credits = excluded.credits, at = excluded.at",
    ],
    [
      "durations",
      map(
        rowsOf(source, "durations"),
        (row) => origins.has(row["origin"]) && !durations.has(durationName(row)),
        (row) => ({ ...row, id: shift(row["id"], numbers.duration) }),
      ),
    ],
    [
      "readings",
      map(rowsOf(source, "readings"), isOfKey, (row) => ({
        ...later(row, "seq"),
        id: shift(row["id"], numbers.reading),
      })),
    ],
    // The trigger adds up what they cost.
    [
      "spend_log",
      map(rowsOf(source, "spend_log"), isOfKey, (row) => ({
        ...later(row, "intended_seq", "repeated_seq", "ended_seq", "polled_seq", "verdict_seq"),
        workspace: named(row["workspace"]),
      })),
    ],
  ];
  const copied: Copied = {};
  for (const [table, rows, clause] of parts)
    copied[table] = yield* filled(sql, table, typesIn(source, table), rows, clause);
  const [before] = kept;
  if (before !== undefined) {
    const types = new Map([...typesIn(source, "requests")].filter(([column]) => column !== "id"));
    const idOf = new Map(
      accounts.map((row) => [
        accountName({ origin: row["origin"], account_id: row["user_id"] }),
        shift(row["id"], numbers.account),
      ]),
    );
    yield* filled(
      sql,
      "requests",
      types,
      kept.map((row) => ({ ...row, account_id: idOf.get(String(row["account"])) })),
    );
  }
  const last = statements(source)("SELECT last FROM sequence").value() as number;
  yield* sql("UPDATE sequence SET last = last + ?").run(last);
  const cost = statements(source)(
    `SELECT coalesce(sum(credits), 0) FROM spent WHERE kind = 'time' AND (origin || ' ' || fingerprint) IN (SELECT value FROM json_each(?))`,
  ).value(JSON.stringify([...keyNames]));
  const summed = yield* sql(
    `SELECT coalesce(sum(credits), 0) FROM spent WHERE kind = 'time' AND (origin || ' ' || fingerprint) IN (SELECT value FROM json_each(?))`,
  ).value(JSON.stringify([...keyNames]));
  if (Number(cost) !== Number(summed))
    throw new Error(`the spend log was not copied whole: expected ${cost} millionths, got ${summed}`);
  return copied;
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
  return kept.map((row) => ({ ...row, account: accountName({ origin, account_id: user }) }));
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
