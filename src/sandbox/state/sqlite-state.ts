import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { named, openSqlite, type Sql, type Sqlite, statements } from "../../sqlite.js";
import { type TaskRow, taskFromRow } from "./rows.js";
import { prepareTables } from "./schema.js";
import { Standings } from "./standings.js";
import type {
  AccountRecord,
  Bucket,
  Change,
  KeyRecord,
  RequestWindow,
  TaskRecord,
  WorldState,
} from "./state.js";
import { admissionsKept } from "./state.js";

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

  /** Tasks whose inputs were not fetched yet, oldest first: a restarted sandbox goes on with them. */
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
