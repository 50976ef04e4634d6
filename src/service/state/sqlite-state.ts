import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { named, openSqlite, type Sql, type Sqlite, statements } from "../../sqlite.js";
import {
  accountColumns,
  accountOf,
  keyColumns,
  type ServiceAccountRow,
  schema,
  type TaskRow,
  taskColumns,
  taskOf,
} from "./rows.js";
import {
  type AccountRecord,
  admissionsKept,
  type Change,
  type KeyRecord,
  type RepeatedTask,
  type RequestWindow,
  repeatKeysKeptMs,
  type TaskRecord,
  type TokenBucket,
  type WorldState,
} from "./state.js";

/** The service makes neither: in a file from somebody else, they would change what it writes. */
function refuseTriggers(db: Sqlite): void {
  const found = db.prepare("select name from sqlite_schema where type in ('trigger', 'view')").get();
  if (found === undefined) return;
  throw Object.assign(new Error("it has a trigger or a view, which this program never makes"), {
    code: "SQLITE_CORRUPT",
  });
}

/**
 * The service's state in one SQLite file. What is committed when `transact` returns survives the end of this process,
 * however it ends; a power cut may undo the last commits, unless the state is durable.
 */
export class SqliteState implements WorldState {
  /** For other readers and writers besides the world: the administration of accounts. */
  readonly db: Sqlite;
  private readonly sql: Sql;

  /**
   * Opens or makes the file, and the folder for it; ":memory:" keeps nothing. If it is durable, commits survive a power cut too.
   * Throws SQLite's error.
   */
  constructor(file: string, { durable = false } = {}) {
    if (file !== ":memory:") mkdirSync(dirname(file), { recursive: true });
    this.db = openSqlite(file);
    try {
      this.db.pragma("journal_mode = WAL");
      this.db.pragma(`synchronous = ${durable ? "FULL" : "NORMAL"}`);
      this.db.pragma("wal_autocheckpoint = 8000");
      this.db.pragma("busy_timeout = 5000");
      this.db.exec(schema);
      refuseTriggers(this.db);
    } catch (error) {
      this.db.close();
      throw named(file, error);
    }
    this.sql = statements(this.db);
  }

  /** Runs `work` in one write transaction: what it reads cannot change before what it writes is committed. */
  transact<Result>(work: () => Result): Result {
    try {
      return this.db.transaction(work).immediate();
    } catch (error) {
      throw named(this.db.name, error);
    }
  }

  close(): void {
    this.db.close();
  }

  keyByHash(hash: string): KeyRecord | undefined {
    return this.sql(`select ${keyColumns} from keys where hash = ?`).get(hash) as KeyRecord | undefined;
  }

  account(id: string): AccountRecord | undefined {
    const row = this.sql(`select ${accountColumns} from accounts where id = ?`).get(id);
    return row === undefined ? undefined : accountOf(row as ServiceAccountRow);
  }

  task(id: string): TaskRecord | undefined {
    const row = this.sql(`select ${taskColumns} from tasks where id = ?`).get(id);
    return row === undefined ? undefined : taskOf(row as TaskRow);
  }

  refundsDue(accountId: string, now: number): TaskRecord[] {
    const rows = this.sql(
      `select ${taskColumns} from tasks
       where account_id = ? and outcome = 'failed' and refunded = 0 and due_at <= ? order by due_at`,
    ).all(accountId, now) as TaskRow[];
    return rows.map(taskOf);
  }

  admittedAt(accountId: string, n: number): number | undefined {
    const row = this.sql("select at from admissions where account_id = ? and n = ?").get(accountId, n);
    return (row as { at: number } | undefined)?.at;
  }

  bucket(accountId: string, window: RequestWindow): TokenBucket | undefined {
    const row = this.sql("select tokens, at from buckets where account_id = ? and window = ?").get(
      accountId,
      window,
    );
    return row as TokenBucket | undefined;
  }

  repeated(accountId: string, repeatKey: string): RepeatedTask | undefined {
    const row = this.sql(
      "select task_id as taskId, sha256, at from repeat_keys where account_id = ? and repeat_key = ?",
    ).get(accountId, repeatKey);
    return row as RepeatedTask | undefined;
  }

  /** Tasks whose inputs are not fetched yet, oldest first: a restarted sandbox continues them. */
  undecidedTasks(): TaskRecord[] {
    const rows = this.sql(`select ${taskColumns} from tasks where outcome is null order by created_at`).all();
    return (rows as TaskRow[]).map(taskOf);
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

  /** Counts the tasks of one request, which this hash stands for. */
  countTake(taskId: string, sha256: string): void {
    const { number } = this.sql(`insert into alike_requests (sha256, number) values (?, 1)
      on conflict (sha256) do update set number = number + 1 returning number`).get(sha256) as {
      number: number;
    };
    if (number > 1) this.sql("insert into retakes (task_id, number) values (?, ?)").run(taskId, number);
  }

  /** The how many-th task of its request it is, from 1. */
  takeOf(taskId: string): number {
    const row = this.sql("select number from retakes where task_id = ?").get(taskId);
    return (row as { number: number } | undefined)?.number ?? 1;
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
      billing_interval, period_end, cancel_at_period_end, admitted) values (@id, @email, @name, @balanceMicro,
      @subscriptionStatus, @plan, @creditsPerMonth, @billingInterval, @periodEnd, @cancelAtPeriodEnd, @admitted)`).run(
      { ...account, cancelAtPeriodEnd: Number(account.cancelAtPeriodEnd) },
    );
  }

  saveKey(key: { id: string; accountId: string; hash: string; name: string; createdAt: number }): void {
    this.sql(`insert into keys (id, account_id, hash, name, created_at)
      values (@id, @accountId, @hash, @name, @createdAt)`).run(key);
  }

  setPlan(accountId: string, plan: string, creditsPerMonth: number): void {
    this.sql("update accounts set plan = ?, credits_per_month = ? where id = ?").run(
      plan,
      creditsPerMonth,
      accountId,
    );
  }

  /** Writes the world's changes. To be called inside `transact`. */
  commit(changes: readonly Change[]): void {
    for (const change of changes) this.write(change);
  }

  private write(change: Change): void {
    switch (change.kind) {
      case "request counted":
        this.sql("update keys set requests_count = requests_count + 1 where id = ?").run(change.keyId);
        return;
      case "request admitted":
        this.sql("update accounts set admitted = @n where id = @accountId").run(change);
        this.sql("insert into admissions (account_id, n, at) values (@accountId, @n, @at)").run(change);
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
        this.sql(`update tasks set outcome = @outcome, error = @error, due_at = @dueAt, outputs = coalesce(@outputs, outputs)
          where id = @taskId and outcome is null`).run({
          ...change,
          outputs: change.outputs === undefined ? null : JSON.stringify(change.outputs),
        });
        return;
      case "repeat key kept":
        this.sql("delete from repeat_keys where at < ?").run(change.at - repeatKeysKeptMs);
        this.sql(`insert or replace into repeat_keys (account_id, repeat_key, task_id, sha256, at)
          values (@accountId, @repeatKey, @taskId, @sha256, @at)`).run(change);
    }
  }

  private addToBalance(accountId: string, micro: number): void {
    this.sql("update accounts set balance_micro = balance_micro + ? where id = ?").run(micro, accountId);
  }

  private addToUsed(keyId: string, micro: number): void {
    this.sql("update keys set used_micro = used_micro + ? where id = ?").run(micro, keyId);
  }

  private insertTask(task: TaskRecord): void {
    this.sql(`insert into tasks (id, external_id, account_id, key_id, model, category, input, cost_micro, created_at,
      due_at, outcome, error, outputs, gone_at) values (@id, @externalId, @accountId, @keyId, @model, @category, @input,
      @costMicro, @createdAt, @dueAt, @outcome, @error, @outputs, @goneAt)`).run({
      ...task,
      input: JSON.stringify(task.input),
      outputs: JSON.stringify(task.outputs),
    });
  }
}
