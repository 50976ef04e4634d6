import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isKeyForm } from "../../src/api/key.js";
import { me as meRecord } from "../../src/api/records.js";
import {
  type AccountChange,
  changeAccount,
  createAccount,
  findAccount,
  listAccounts,
  openDesk,
} from "../../src/service/admin/accounts.js";
import { createKey, listKeys, newKeyValue, revokeKey } from "../../src/service/admin/keys.js";
import { Caller } from "../sandbox/caller.js";
import { CountingRandom, ManualClock } from "../sandbox/manual-clock.js";

let folder: string;
let file: string;
let clock: ManualClock;
/** The sandbox that serves the file all the while. */
let caller: Caller;
/** A second connection to the file, as another process has it. */
let desk: ReturnType<typeof openDesk>;
let own: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-admin-"));
  file = join(folder, "service.db");
  clock = new ManualClock();
  caller = await Caller.start({ file, credits: 50 }, clock);
  desk = openDesk({ file, clock, random: new OtherRandom() });
  own = findAccount(desk, undefined).id;
});
afterEach(async () => {
  desk.close();
  await caller.sandbox.close();
  rmSync(folder, { recursive: true });
});

/** Ids that do not meet those of the served sandbox. */
class OtherRandom extends CountingRandom {
  override uuid(): string {
    return super.uuid().replace(/^0/, "f");
  }
}

function me(key: string) {
  return caller.send("GET", "/api/v1/me", { headers: { authorization: `Bearer ${key}` } });
}

describe("a key made beside a running sandbox", () => {
  it("has the documented form and opens its account immediately", async () => {
    const { value, id } = createKey(desk, own, " nightly ");
    expect(isKeyForm(value)).toBe(true);
    const answer = await me(value);
    expect(answer.status).toBe(200);
    expect(answer.body.api_key).toEqual({ id, name: "nightly", requests_count: 1 });
    expect(answer.body.credits).toEqual({ balance: 50, used_this_key: 0 });
  });

  it("is stored as a hash only: no file of the state holds its value", () => {
    const { value } = createKey(desk, own, "nightly");
    const stored = ["", "-wal", "-shm"].map((suffix) => readFileSync(`${file}${suffix}`, "latin1")).join("");
    expect(stored).toContain("nightly");
    expect(stored).not.toContain(value);
    expect(stored).not.toContain(value.slice(4));
  });

  it("is refused as an unknown one from the moment it is revoked", async () => {
    const { value } = createKey(desk, own, "nightly");
    expect((await me(value)).status).toBe(200);
    revokeKey(desk, own, "nightly");
    const revoked = await me(value);
    const unknown = await me(`svc_${"x".repeat(32)}`);
    expect(revoked.status).toBe(401);
    expect(revoked.body).toEqual(unknown.body);
  });

  it("has its own usage record, and shares the account's credits", async () => {
    const { value } = createKey(desk, own, "nightly");
    const body = JSON.stringify({ model: "aurora-image", prompt: "A heron" });
    const headers = { "x-api-key": value, "content-type": "application/json" };
    await caller.send("POST", "/api/v1/generate", { headers, body });
    const mine = listKeys(desk, own).find((key) => key.name === "nightly");
    expect(mine).toMatchObject({ requestsCount: 1, used: 4, isPublic: false, revokedAt: null });
    expect((await me(caller.sandbox.key)).body.credits).toEqual({ balance: 46, used_this_key: 0 });
  });
});

describe("keys", () => {
  it("are found by name or id, and a revoked one is not revoked twice", () => {
    const { id } = createKey(desk, own, "nightly");
    expect(revokeKey(desk, own, id).name).toBe("nightly");
    expect(() => revokeKey(desk, own, "nightly")).toThrow('the key "nightly" is revoked already');
    expect(() => revokeKey(desk, own, "daily")).toThrow('the key "daily" does not exist');
  });

  it("of one name are good one at a time, and the name is free again after", () => {
    createKey(desk, own, "nightly");
    expect(() => createKey(desk, own, "nightly")).toThrow('there is a key named "nightly" already');
    revokeKey(desk, own, "nightly");
    createKey(desk, own, "nightly");
    expect(listKeys(desk, own).map(({ name, revokedAt }) => [name, revokedAt === null])).toEqual([
      ["nightly", true],
      ["sandbox", true],
      ["nightly", false],
    ]);
  });

  it("of another account are out of reach", () => {
    const ana = createAccount(desk, "ana@example.com", {});
    const { id } = createKey(desk, ana.id, "hers");
    expect(() => revokeKey(desk, own, id)).toThrow("does not exist");
    expect(listKeys(desk, own).map((key) => key.name)).toEqual(["sandbox"]);
  });

  it.each([
    ["", "a key needs a name"],
    ["   ", "a key needs a name"],
    ["x".repeat(65), "has 64 characters at most, and this has 65"],
    ["night\u202ely", "no invisible characters"],
    ["night\nly", "no invisible characters"],
  ])("are not named %j", (name, message) => {
    expect(() => createKey(desk, own, name)).toThrow(message);
  });

  it("that every sandbox has cannot be revoked", async () => {
    expect(() => revokeKey(desk, own, "sandbox")).toThrow("--sandbox needs it");
    expect((await me(caller.sandbox.key)).status).toBe(200);
  });

  it("are spread evenly over letters and digits", () => {
    const random = new CountingRandom();
    const counts = new Map<string, number>();
    for (let made = 0; made < 2_000; made++) {
      for (const letter of newKeyValue(random).slice(4)) counts.set(letter, (counts.get(letter) ?? 0) + 1);
    }
    // 64,000 characters over 62: about 1,032 of each, with a standard deviation of 32.
    expect(counts.size).toBe(62);
    expect(Math.min(...counts.values())).toBeGreaterThan(1_032 - 6 * 32);
    expect(Math.max(...counts.values())).toBeLessThan(1_032 + 6 * 32);
  });
});

describe("a change of the account", () => {
  const day = 24 * 60 * 60 * 1_000;

  it.each<[AccountChange, object]>([
    [{ plan: "Starter" }, { subscription: { plan: "Starter", credits_per_month: 500, status: "active" } }],
    [{ credits: 12.5 }, { credits: { balance: 12.5 } }],
    [{ subscription: "none" }, { subscription: null }],
    [{ cancelAtPeriodEnd: true }, { subscription: { cancel_at_period_end: true, status: "active" } }],
    [{ name: "Ada" }, { user: { name: "Ada" } }],
    [{ name: "" }, { user: { name: null } }],
  ])("%j shows in the next answer of GET me, and nothing else changes", async (change, expected) => {
    const before = meRecord.parse((await me(caller.sandbox.key)).body);
    changeAccount(desk, own, change);
    const after = (await me(caller.sandbox.key)).body;
    expect(after).toMatchObject(expected);
    const counted = { ...before.api_key, requests_count: before.api_key.requests_count + 1 };
    const untouched = Object.entries(before).filter(([part]) => part !== "api_key" && !(part in expected));
    expect(after).toMatchObject({ ...Object.fromEntries(untouched), api_key: counted });
  });

  it("to no subscription or one past due closes generation, and to active opens it again", async () => {
    for (const subscription of ["none", "past_due"] as const) {
      changeAccount(desk, own, { subscription });
      expect((await caller.get("/api/v1/models")).body.error.code).toBe("SUBSCRIPTION_REQUIRED");
    }
    changeAccount(desk, own, { subscription: "active" });
    expect((await caller.get("/api/v1/models")).status).toBe(200);
  });

  it("to canceled leaves the subscription good until its period ends", async () => {
    changeAccount(desk, own, { subscription: "canceled", periodEnd: clock.now() + day });
    expect((await caller.get("/api/v1/models")).status).toBe(200);
    clock.advance(day);
    expect((await caller.get("/api/v1/models")).status).toBe(403);
  });

  it("to cancel at the end of the period means the present period, however often it was renewed", () => {
    clock.advance(40 * day);
    const { periodEnd } = findAccount(desk, undefined);
    expect(periodEnd).toBeGreaterThan(clock.now());
    expect(changeAccount(desk, own, { cancelAtPeriodEnd: true })).toMatchObject({
      subscriptionStatus: "active",
      periodEnd,
    });
  });

  it("to active after the period begins a new one", () => {
    changeAccount(desk, own, { subscription: "canceled", periodEnd: clock.now() - day });
    expect(changeAccount(desk, own, { subscription: "active" }).periodEnd).toBe(clock.now() + 30 * day);
  });
});

describe("another user", () => {
  it("has an account, keys, credits and tasks apart from the first", async () => {
    const ana = createAccount(desk, "ana@example.com", { plan: "Starter", credits: 4, name: "Ana" });
    const { value } = createKey(desk, ana.id, "hers");
    const headers = { "x-api-key": value, "content-type": "application/json" };
    const body = JSON.stringify({ model: "aurora-image", prompt: "A heron" });
    const created = await caller.send("POST", "/api/v1/generate", { headers, body });
    expect(created.body.credits_remaining).toBe(0);
    expect((await me(caller.sandbox.key)).body.credits.balance).toBe(50);
    expect((await caller.task(created.body.task_id)).body.error.code).toBe("TASK_NOT_FOUND");
    expect((await me(value)).body.user).toEqual({ id: ana.id, email: "ana@example.com", name: "Ana" });
  });

  it("is found by e-mail in any case, and has it alone", () => {
    createAccount(desk, "ana@example.com", {});
    expect(findAccount(desk, "ANA@example.com").email).toBe("ana@example.com");
    expect(() => createAccount(desk, "Ana@Example.com", {})).toThrow(
      "there is a user Ana@Example.com already",
    );
    expect(listAccounts(desk).map((each) => each.email)).toEqual([
      "sandbox@localhost.invalid",
      "ana@example.com",
    ]);
  });

  it("that does not exist is named together with those that do", () => {
    expect(() => findAccount(desk, "bo@example.com")).toThrow(
      'there is no user "bo@example.com"; there is sandbox@localhost.invalid',
    );
    expect(() => createAccount(desk, "bo", {})).toThrow(
      'expected an e-mail address such as ana@example.com, got "bo"',
    );
  });
});

describe("a persisted account", () => {
  it("keeps plan and credits when it is served again without them", async () => {
    changeAccount(desk, own, { plan: "Enterprise", credits: 7 });
    await caller.sandbox.close();
    caller = await Caller.start({ file }, clock);
    const { subscription, credits } = (await caller.get("/api/v1/me")).body;
    expect([subscription.plan, credits.balance]).toEqual(["Enterprise", 7]);
  });
});
