import type {
  AccountRecord,
  Change,
  KeyRecord,
  RepeatedTask,
  TaskRecord,
  TokenBucket,
  WorldState,
} from "../../src/service/state/state.js";

/** The service's own books, in memory: what the auditor believes, and nothing of the runner's. */
export class Ledger implements WorldState {
  readonly tasks = new Map<string, TaskRecord>();
  /** Items that tasks were made for; those of somebody else are not in here. */
  readonly madeFor = new Map<string, string>();
  /** How many tasks somebody else has begun at once with the runner's key, each time. */
  readonly foreignBursts: number[] = [];
  private readonly keys = new Map<string, KeyRecord>();
  private readonly accounts = new Map<string, AccountRecord>();
  private readonly admissions = new Map<number, number>();
  private readonly repeatKeys = new Map<string, RepeatedTask>();

  addAccount(account: AccountRecord): void {
    this.accounts.set(account.id, account);
  }

  addKey(hash: string, key: KeyRecord): void {
    this.keys.set(hash, key);
  }

  keyByHash(hash: string): KeyRecord | undefined {
    return this.keys.get(hash);
  }

  account(id: string): AccountRecord | undefined {
    return this.accounts.get(id);
  }

  task(id: string): TaskRecord | undefined {
    return this.tasks.get(id);
  }

  refundsDue(_accountId: string, now: number): TaskRecord[] {
    return [...this.tasks.values()].filter(
      (task) => task.outcome === "failed" && !task.refunded && task.dueAt <= now,
    );
  }

  admittedAt(_accountId: string, n: number): number | undefined {
    return this.admissions.get(n);
  }

  repeated(_accountId: string, repeatKey: string): RepeatedTask | undefined {
    return this.repeatKeys.get(repeatKey);
  }

  /** The simulated service has no token buckets. */
  bucket(): TokenBucket | undefined {
    return undefined;
  }

  commit(changes: readonly Change[]): void {
    for (const change of changes) this.write(change);
  }

  topUp(accountId: string, micro: number): void {
    this.accountOf(accountId).balanceMicro += micro;
  }

  private write(change: Change): void {
    switch (change.kind) {
      case "request counted":
        this.key(change.keyId).requestsCount++;
        return;
      case "request admitted":
        this.admissions.set(change.n, change.at);
        this.accountOf(change.accountId).admitted = change.n;
        return;
      case "task created":
        this.tasks.set(change.task.id, { ...change.task });
        return;
      case "task charged":
        this.accountOf(change.accountId).balanceMicro -= change.micro;
        this.key(change.keyId).usedMicro += change.micro;
        return;
      case "task refunded":
        this.taskOf(change.taskId).refunded = true;
        this.accountOf(change.accountId).balanceMicro += change.micro;
        if (change.lowersUsed) this.key(change.keyId).usedMicro -= change.micro;
        return;
      case "final state seen":
        this.taskOf(change.taskId).seenFinal = true;
        return;
      case "repeat key kept":
        this.repeatKeys.set(change.repeatKey, change);
        return;
      default:
        throw new Error(`the simulated service never has the change "${change.kind}"`);
    }
  }

  private key(id: string): KeyRecord {
    return [...this.keys.values()].find((key) => key.id === id) as KeyRecord;
  }

  private accountOf(id: string): AccountRecord {
    return this.accounts.get(id) as AccountRecord;
  }

  private taskOf(id: string): TaskRecord {
    return this.tasks.get(id) as TaskRecord;
  }
}
