import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { named, openSqlite, type Sql, type Sqlite, statements } from "../../sqlite.js";
import {
  accountFromRow,
  keyFromRow,
  prepareTables,
  type SandboxAccountRow,
  type SandboxKeyRow,
  type TaskRow,
  taskFromRow,
} from "./rows.js";
import {
  type AccountRecord,
  admissionsKept,
  type Bucket,
  type Change,
  type KeyRecord,
  type RequestWindow,
  type TaskRecord,
  type WorldState,
} from "./state.js";

/**
 * The sandbox's state in one SQLite file. What was committed is on disk when `transact` returns, whatever is cut
 * afterwards, the process or the power.
 */
export class SqliteState implements WorldState {
  /** For what reads and writes beside the world: the administration of accounts. */
  readonly db: Sqlite;
  private readonly sql: Sql;
  private readonly standings: Standings;

  /** Opens or makes the file, and the folder for it; ":memory:" keeps nothing. Throws SQLite's error. */
  constructor(file: string) {
    if (file !== ":memory:") mkdirSync(dirname(file), { recursive: true });
    this.db = openSqlite(file);
    try {
      this.db.pragma("journal_mode = WAL");
      // What is committed survives the end of this process, however it ends. It need not survive a power cut.
      this.db.pragma("synchronous = NORMAL");
      this.db.pragma("wal_autocheckpoint = 8000");
      this.db.pragma("busy_timeout = 5000");
      prepareTables(this.db);
    } catch (error) {
      this.db.close();
      throw named(file, error);
    }
    this.sql = statements(this.db);
    this.standings = new Standings(this.sql);
  }

  /** Runs `work` in one write transaction: what it reads cannot change before what it writes is committed. */
  transact<Result>(work: () => Result): Result {
    try {
      return this.db.transaction(work).immediate();
    } catch (error) {
      throw named(this.db.name, error);
    }
  }

  /** Like `transact`, for the world's requests: keys and accounts are read and written once for all of them. */
  serve<Result>(work: () => Result): Result {
    return this.transact(() => this.standings.during(work));
  }

  close(): void {
    this.db.close();
  }

  keyByHash(hash: string): KeyRecord | undefined {
    return this.standings.keyByHash(hash);
  }

  account(id: string): AccountRecord | undefined {
    return this.standings.account(id);
  }

  task(id: string): TaskRecord | undefined {
    const row = this.sql("select * from tasks where id = ?").get(id) as TaskRow | undefined;
    return row && taskFromRow(row);
  }

  refundsDue(accountId: string, now: number): TaskRecord[] {
    const rows = this.sql(
      "select * from tasks where account_id = ? and outcome = 'failed' and refunded = 0 and due_at <= ? order by due_at",
    ).all(accountId, now) as TaskRow[];
    return rows.map(taskFromRow);
  }

  admittedAt(accountId: string, n: number): number | undefined {
    const row = this.sql("select at from admissions where account_id = ? and n = ?").get(accountId, n);
    return (row as { at: number } | undefined)?.at;
  }

  bucket(accountId: string, window: RequestWindow): Bucket | undefined {
    const row = this.sql("select tokens, at from buckets where account_id = ? and window = ?").get(
      accountId,
      window,
    );
    return row as Bucket | undefined;
  }

  /** Tasks whose inputs are not fetched yet, oldest first: a restarted sandbox continues them. */
  undecidedTasks(): TaskRecord[] {
    const rows = this.sql("select * from tasks where outcome is null order by created_at").all() as TaskRow[];
    return rows.map(taskFromRow);
  }

  /** Keeps the bytes of a task's input; equal bytes are kept once. */
  saveInput(taskId: string, field: string, sha256: string, bytes: Uint8Array): void {
    this.sql("insert or ignore into blobs (sha256, bytes) values (?, ?)").run(sha256, bytes);
    this.sql("insert or replace into task_inputs (task_id, field, sha256) values (?, ?, ?)").run(
      taskId,
      field,
      sha256,
    );
  }

  /** The kept inputs of a task by field. */
  inputsOf(taskId: string): Record<string, Uint8Array> {
    const rows = this.sql(
      "select field, bytes from task_inputs join blobs using (sha256) where task_id = ? order by field",
    ).all(taskId) as { field: string; bytes: Uint8Array }[];
    return Object.fromEntries(rows.map((row) => [row.field, row.bytes]));
  }

  setting(name: string): string | undefined {
    const row = this.sql("select value from settings where name = ?").get(name);
    return (row as { value: string } | undefined)?.value;
  }

  saveSetting(name: string, value: string): void {
    this.sql("insert or replace into settings (name, value) values (?, ?)").run(name, value);
  }

  saveAccount(account: AccountRecord): void {
    this.sql(`insert into accounts (id, email, name, balance_micro, subscription_status, plan, credits_per_month,
      billing_interval, period_end, cancel_at_period_end, admitted) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`).run(
      account.id,
      account.email,
      account.name,
      account.balanceMicro,
      account.subscriptionStatus,
      account.plan,
      account.creditsPerMonth,
      account.billingInterval,
      account.periodEnd,
      Number(account.cancelAtPeriodEnd),
      account.admitted,
    );
  }

  saveKey(key: { id: string; accountId: string; hash: string; name: string; createdAt: number }): void {
    this.sql("insert into keys (id, account_id, hash, name, created_at) values (?, ?, ?, ?, ?)").run(
      key.id,
      key.accountId,
      key.hash,
      key.name,
      key.createdAt,
    );
  }

  setPlan(accountId: string, plan: string, creditsPerMonth: number): void {
    this.sql("update accounts set plan = ?, credits_per_month = ? where id = ?").run(
      plan,
      creditsPerMonth,
      accountId,
    );
  }

  setPeriodEnd(accountId: string, periodEnd: number): void {
    this.sql("update accounts set period_end = ? where id = ?").run(periodEnd, accountId);
  }

  /** Writes the world's changes. To be called inside `transact`. */
  commit(changes: readonly Change[]): void {
    for (const change of changes) this.write(change);
  }

  private write(change: Change): void {
    switch (change.kind) {
      case "request counted":
        this.standings.changeKey(change.keyId, (key) => {
          key.requestsCount++;
        });
        return;
      case "request admitted":
        this.standings.changeAccount(change.accountId, (account) => {
          account.admitted = change.n;
        });
        this.sql("insert into admissions (account_id, n, at) values (?, ?, ?)").run(
          change.accountId,
          change.n,
          change.at,
        );
        this.sql("delete from admissions where account_id = ? and n = ?").run(
          change.accountId,
          change.n - admissionsKept,
        );
        return;
      case "bucket drawn":
        this.sql("insert or replace into buckets (account_id, window, tokens, at) values (?, ?, ?, ?)").run(
          change.accountId,
          change.window,
          change.bucket.tokens,
          change.bucket.at,
        );
        return;
      case "task created":
        this.insertTask(change.task);
        return;
      case "task charged":
        this.addToBalance(change.accountId, -change.micro);
        this.addToUsed(change.keyId, change.micro);
        return;
      case "task refunded":
        this.sql("update tasks set refunded = 1 where id = ?").run(change.taskId);
        this.addToBalance(change.accountId, change.micro);
        if (change.lowersUsed) this.addToUsed(change.keyId, -change.micro);
        return;
      case "final state seen":
        this.sql("update tasks set seen_final = 1 where id = ?").run(change.taskId);
        return;
      case "outcome decided":
        this.sql("update tasks set outcome = ?, error = ?, due_at = ? where id = ? and outcome is null").run(
          change.outcome,
          change.error,
          change.dueAt,
          change.taskId,
        );
    }
  }

  private addToBalance(accountId: string, micro: number): void {
    this.standings.changeAccount(accountId, (account) => {
      account.balanceMicro += micro;
    });
  }

  private addToUsed(keyId: string, micro: number): void {
    this.standings.changeKey(keyId, (key) => {
      key.usedMicro += micro;
    });
  }

  private insertTask(task: TaskRecord): void {
    this.sql(`insert into tasks (id, external_id, account_id, key_id, model, category, input, cost_micro, created_at,
      due_at, outcome, error, outputs, gone_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`).run(
      task.id,
      task.externalId,
      task.accountId,
      task.keyId,
      task.model,
      task.category,
      JSON.stringify(task.input),
      task.costMicro,
      task.createdAt,
      task.dueAt,
      task.outcome,
      task.error,
      JSON.stringify(task.outputs),
      task.goneAt,
    );
  }
}

/**
 * Counters of keys and accounts: requests, credits used and left. Every request reads its own key and account
 * and changes both, so the requests that share a write transaction share them as well: `during` reads each once and
 * writes each once. No other process can change them in the meantime: the transaction has the database's write lock.
 */
export class Standings {
  private held: Held | null = null;

  constructor(private readonly sql: Sql) {}

  /** Runs `work` and writes what it changed. What `work` throws leaves nothing behind. */
  during<Result>(work: () => Result): Result {
    const held = new Held();
    this.held = held;
    try {
      const result = work();
      for (const key of held.changedKeys) this.writeKey(key);
      for (const account of held.changedAccounts) this.writeAccount(account);
      return result;
    } finally {
      this.held = null;
    }
  }

  keyByHash(hash: string): KeyRecord | undefined {
    const id = this.held?.keyIds.get(hash);
    if (id !== undefined) return this.held?.keys.get(id);
    const row = this.sql("select * from keys where hash = ?").get(hash) as SandboxKeyRow | undefined;
    if (!row) return undefined;
    this.held?.keyIds.set(hash, row.id);
    return this.kept(this.held?.keys, row.id, () => keyFromRow(row));
  }

  account(id: string): AccountRecord | undefined {
    return this.kept(this.held?.accounts, id, () => {
      const row = this.sql("select * from accounts where id = ?").get(id) as SandboxAccountRow | undefined;
      return row && accountFromRow(row);
    });
  }

  changeKey(id: string, change: (key: KeyRecord) => void): void {
    const key = this.kept(this.held?.keys, id, () =>
      keyFromRow(this.sql("select * from keys where id = ?").get(id) as SandboxKeyRow),
    );
    change(key);
    if (this.held) this.held.changedKeys.add(key);
    else this.writeKey(key);
  }

  changeAccount(id: string, change: (account: AccountRecord) => void): void {
    const account = this.account(id);
    if (!account) throw new Error(`there is no account ${id}`);
    change(account);
    if (this.held) this.held.changedAccounts.add(account);
    else this.writeAccount(account);
  }

  private kept<Value>(
    records: Map<string, NonNullable<Value>> | undefined,
    id: string,
    read: () => Value,
  ): Value {
    const known = records?.get(id);
    if (known) return known;
    const value = read();
    if (value) records?.set(id, value);
    return value;
  }

  private writeKey({ id, requestsCount, usedMicro }: KeyRecord): void {
    this.sql("update keys set requests_count = ?, used_micro = ? where id = ?").run(
      requestsCount,
      usedMicro,
      id,
    );
  }

  private writeAccount({ id, balanceMicro, admitted }: AccountRecord): void {
    this.sql("update accounts set balance_micro = ?, admitted = ? where id = ?").run(
      balanceMicro,
      admitted,
      id,
    );
  }
}

/** What one transaction has read and changed so far. */
class Held {
  /** Ids of keys by hash. */
  readonly keyIds = new Map<string, string>();
  readonly keys = new Map<string, KeyRecord>();
  readonly accounts = new Map<string, AccountRecord>();
  readonly changedKeys = new Set<KeyRecord>();
  readonly changedAccounts = new Set<AccountRecord>();
}
