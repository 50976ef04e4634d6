import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sandboxKey } from "../../src/api/key.js";
import { ensureDefaultAccount } from "../../src/service/state/default-account.js";
import { SqliteState } from "../../src/service/state/sqlite-state.js";
import type { Change } from "../../src/service/state/state.js";
import { keyHash } from "../../src/service/state/state.js";
import { systemRandom } from "../../src/system.js";

let state: SqliteState;
let charge: Change;

beforeEach(() => {
  state = new SqliteState(":memory:");
  ensureDefaultAccount(state, systemRandom, 0, { plan: undefined, credits: 10 });
  const { id: keyId, accountId } = standing().key;
  charge = { kind: "task charged", accountId, keyId, micro: 4_000_000 };
});

afterEach(() => state.close());

function standing() {
  const key = state.keyByHash(keyHash(sandboxKey));
  const account = state.account(key?.accountId ?? "");
  if (!key || !account) throw new Error("there is no default account");
  return { key, account };
}

function money() {
  const { key, account } = standing();
  return { used: key.usedMicro, left: account.balanceMicro };
}

describe("keys and accounts", () => {
  it("what one request of a transaction charges, the next one sees", () => {
    const seen = state.transact(() => {
      const before = money();
      state.commit([charge]);
      return [before, money()];
    });
    expect(seen).toEqual([
      { used: 0, left: 10_000_000 },
      { used: 4_000_000, left: 6_000_000 },
    ]);
    expect(money()).toEqual({ used: 4_000_000, left: 6_000_000 });
  });

  it("a transaction that fails takes back all of its charges", () => {
    const failing = () =>
      state.transact(() => {
        state.commit([charge, charge]);
        throw new Error("the disk is full");
      });
    expect(failing).toThrow("the disk is full");
    expect(money()).toEqual({ used: 0, left: 10_000_000 });
    expect(state.transact(money)).toEqual({ used: 0, left: 10_000_000 });
  });

  it("charges beyond the balance are refused by the database, with everything around them", () => {
    expect(() => state.transact(() => state.commit([charge, charge, charge]))).toThrow(/CHECK/);
    expect(money()).toEqual({ used: 0, left: 10_000_000 });
  });

  it("a refund reaches the key that paid, also when another key asks", () => {
    const { key, account } = standing();
    state.commit([charge]);
    state.saveKey({ id: "other", accountId: account.id, hash: "other", name: "Other", createdAt: 0 });
    const refund: Change = {
      kind: "task refunded",
      taskId: "none",
      accountId: account.id,
      keyId: key.id,
      micro: 1_000_000,
      lowersUsed: true,
    };
    state.transact(() => {
      state.keyByHash("other");
      state.commit([refund]);
    });
    expect(money()).toEqual({ used: 3_000_000, left: 7_000_000 });
    expect(state.keyByHash("other")?.usedMicro).toBe(0);
  });

  it("an account changed by another process is read as it is then", () => {
    state.transact(() => state.commit([charge]));
    state.db.prepare("update accounts set balance_micro = 1").run();
    expect(state.transact(money).left).toBe(1);
  });
});
