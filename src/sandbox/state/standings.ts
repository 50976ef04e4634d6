import type { Sql } from "../../sqlite.js";
import { accountFromRow, keyFromRow, type SandboxAccountRow, type SandboxKeyRow } from "./rows.js";
import type { AccountRecord, KeyRecord } from "./state.js";

/**
 * Where keys and accounts stand: requests counted, credits used and left. Every request reads its own key and account
 * and changes both, so the requests that share a write transaction share them as well: `during` reads each once and
 * writes each once. Nobody else can change them meanwhile, because the transaction has the database's write lock.
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
