import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { credits } from "../../src/core/money.js";
import { openSqlite } from "../../src/sqlite.js";
import { openAccounts } from "../../src/store/accounts/accounts.js";
import { openSchedules } from "../../src/store/schedules.js";
import { openWorkspace } from "../../src/store/workspace/workspace.js";
import { ManualClock } from "../manual-clock.js";
import {
  golden,
  goldenStates,
  writeGoldenAccounts,
  writeGoldenSchedules,
  writeGoldenWorkspace,
} from "./golden-content.js";

/**
 * P19: one database for every released schema version, exactly as the program of that version wrote it. The test migrates
 * and uses each of them. A schema cannot change without a new version, because the newest file would no longer match.
 * `UPDATE_GOLDEN=1` writes the file of a new version and never replaces an existing one.
 */
interface Kind {
  name: string;
  write(path: string): Promise<void>;
  migrate(path: string): void;
}

const kinds: readonly Kind[] = [
  {
    name: "workspace",
    write: writeGoldenWorkspace,
    migrate: (path) => openWorkspace({ stateFile: path, root: dirname(path) }, new ManualClock()).close(),
  },
  {
    name: "accounts",
    write: writeGoldenAccounts,
    migrate: (path) => openAccounts(path, new ManualClock()).close(),
  },
  {
    name: "schedules",
    write: writeGoldenSchedules,
    migrate: (path) => openSchedules(path, new ManualClock()).close(),
  },
];

const folder = new URL("./golden/", import.meta.url);
const scratch = mkdtempSync(join(tmpdir(), "bulkgen-golden-"));

function goldenFile(name: string, version: number): URL {
  return new URL(`${name}-${version}.db.gz`, folder);
}

/** A copy to work on. */
function copyOf(name: string, version: number): string {
  const path = join(mkdtempSync(join(scratch, "copy-")), `${name}.db`);
  writeFileSync(path, gunzipSync(readFileSync(goldenFile(name, version))));
  return path;
}

function read<Result>(path: string, use: (db: ReturnType<typeof openSqlite>) => Result): Result {
  const db = openSqlite(path);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

const versionOf = (path: string) => read(path, (db) => db.pragma("user_version", { simple: true }) as number);

/** Every table, index and trigger, by its own text. */
const schemaOf = (path: string) =>
  read(path, (db) => db.prepare("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").all());

function fresh({ name, migrate }: Kind): string {
  const path = join(mkdtempSync(join(scratch, "fresh-")), `${name}.db`);
  migrate(path);
  return path;
}

async function addGolden(kind: Kind): Promise<void> {
  const path = join(mkdtempSync(join(scratch, "new-")), `${kind.name}.db`);
  await kind.write(path);
  read(path, (db) => db.exec("PRAGMA journal_mode = DELETE; VACUUM"));
  const file = goldenFile(kind.name, versionOf(path));
  if (!existsSync(file)) writeFileSync(file, gzipSync(readFileSync(path), { level: 9 }));
}

if (process.env["UPDATE_GOLDEN"] === "1") for (const kind of kinds) await addGolden(kind);

const versions = kinds.flatMap((kind) => {
  const newest = versionOf(fresh(kind));
  return Array.from({ length: newest }, (_, index) => ({ kind, version: index + 1, newest }));
});

describe.each(kinds)("the $name database", (kind) => {
  test("P19: has one golden file for each version", () => {
    const wanted = versions.filter((each) => each.kind === kind).map(({ version }) => version);
    const names = readdirSync(folder).filter((name) => name.startsWith(`${kind.name}-`));
    expect(names.toSorted(), "UPDATE_GOLDEN=1 npx vitest run test/store/golden.test.ts").toEqual(
      wanted.map((version) => `${kind.name}-${version}.db.gz`).toSorted(),
    );
  });

  test("P19: has the schema of its newest golden file", () => {
    const path = fresh(kind);
    const why = "never edit a released migration: add another, then run with UPDATE_GOLDEN=1";
    expect(schemaOf(path), why).toEqual(schemaOf(copyOf(kind.name, versionOf(path))));
  });
});

describe.each(versions)("a golden $kind.name database of version $version", ({ kind, version, newest }) => {
  test("P19: is migrated to the schema of a new database, after a backup", () => {
    const path = copyOf(kind.name, version);
    expect(versionOf(path)).toBe(version);
    kind.migrate(path);
    expect(versionOf(path)).toBe(newest);
    expect(schemaOf(path)).toEqual(schemaOf(fresh(kind)));
    expect(existsSync(`${path}.schema-${version}.backup`)).toBe(version < newest);
    expect(read(path, (db) => db.pragma("integrity_check", { simple: true }))).toBe("ok");
    expect(read(path, (db) => db.pragma("foreign_key_check"))).toEqual([]);
  });
});

describe.each(versions.filter(({ kind }) => kind.name === "workspace"))(
  "a workspace of version $version",
  ({ version }) => {
    test("P19: has all its items, and every item can go on", async () => {
      const store = openWorkspace(
        { stateFile: copyOf("workspace", version), root: tmpdir() },
        new ManualClock(),
      );
      const run = await store.run("unfinished");
      expect(run).toMatchObject({ jobName: "demo", state: "interrupted", exit: "interrupted" });
      const items = await store.items(run?.id ?? 0);
      expect(Object.fromEntries(items.map((item) => [item.rowId, item.state]))).toEqual(goldenStates);
      expect((await store.itemsOf("demo")).find((item) => item.rowId === "vanished")?.state).toBe("dropped");
      const idOf = (name: string) => items.find((item) => item.rowId === name)?.id ?? 0;
      expect(await store.attempt(idOf("processing"))).toMatchObject({
        taskId: "task-processing",
        charged: credits(4),
      });
      const lost = await store.attempt(idOf("unknown"));
      expect(lost?.sentAt).toBe(lost?.intendedAt);
      expect(await store.spending(run?.id ?? 0)).toMatchObject({
        charged: credits(12),
        pending: credits(20),
      });
      expect(await store.filesOf(run?.id ?? 0)).toEqual({ made: 1, files: 2, bytes: 6 });
      expect((await store.interrupted()).map((item) => item.rowId)).toEqual(["submitting", "unknown"]);

      await store.saved(idOf("ready"), 1, savedFile);
      await store.saved(idOf("ready"), 2, savedFile);
      await store.refreshOutputs(idOf("expired"), { urls: ["https://files.example/fresh"], fetchBy: 0 });
      await store.apply(idOf("failed"), "retry", {});
      await store.complete(idOf("overdue"), facts);
      const { id } = await store.intend(idOf("planned"), {
        runId: run?.id ?? 0,
        sentAt: 0,
        bodySha256: "00",
        spendLogId: null,
      });
      await store.conclude(id, "accepted", { taskId: "task-planned", charged: credits(4) });
      const after = Object.fromEntries(
        (await store.items(run?.id ?? 0)).map((item) => [item.rowId, item.state]),
      );
      expect(after).toMatchObject({ ready: "archived", failed: "planned", planned: "processing" });
      await store.close();
    });
  },
);

describe.each(versions.filter(({ kind }) => kind.name === "accounts"))(
  "an accounts database of version $version",
  ({ version }) => {
    test("P19: knows its keys, limits, requests and charges", async () => {
      const clock = new ManualClock();
      const accounts = openAccounts(copyOf("accounts", version), clock);
      const account = await accounts.accountOf(golden.origin, golden.fingerprint);
      expect(account.userId).toBe(golden.user);
      expect(await accounts.quota(account.id)).toMatchObject({
        minute: { limit: 60, used: golden.requests },
        day: { limit: 10_000, used: golden.requests },
      });
      expect(await accounts.highestCharges(account.id)).toEqual(
        new Map([[golden.charged.group, credits(golden.charged.credits)]]),
      );
      // The last of these had not been answered.
      clock.advance(2_000);
      expect(
        (await accounts.reserve({ accountId: account.id, fingerprint: golden.fingerprint }, "task")).ticket,
      ).not.toBeNull();
      await accounts.close();
    });
  },
);

describe.each(versions.filter(({ kind }) => kind.name === "schedules"))(
  "a schedules database of version $version",
  ({ version }) => {
    test("P19: knows its flags and past runs, and starts none of these again", async () => {
      const schedules = openSchedules(copyOf("schedules", version), new ManualClock());
      const [schedule] = await schedules.all();
      expect(schedule).toMatchObject({ name: "nightly", flags: [["--sandbox"], ["--until", "06:00"]] });
      expect(await schedules.claim("nightly", golden.scheduledRun, { state: "running" })).toBe(false);
      expect(await schedules.claim("nightly", golden.scheduledRun + 1, { state: "running" })).toBe(true);
      expect((await schedules.scheduledRuns("nightly", 5)).map(({ state }) => state)).toEqual([
        "running",
        "ended",
      ]);
      schedules.close();
    });
  },
);

const savedFile = { file: "a.png", bytes: 3, sha256: "ab", mime: "image/png", check: "decoded" };
const facts = { urls: ["https://a/1"], fetchBy: 0, charged: credits(4), createdAt: "c", completedAt: null };
