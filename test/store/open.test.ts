import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { openSqlite, type Sqlite } from "../../src/sqlite.js";
import {
  type Defer,
  groupCommits,
  type Migration,
  NewerDatabase,
  openDatabase,
} from "../../src/store/open.js";

let file: string;
const first: Migration = (db) => {
  db.exec("CREATE TABLE opened (count INTEGER NOT NULL); INSERT INTO opened VALUES (0); CREATE TABLE t (x)");
};
const second: Migration = (db) => {
  db.exec("ALTER TABLE t ADD COLUMN y");
};

beforeEach(() => {
  file = join(mkdtempSync(join(tmpdir(), "bulkgen-open-")), "deep", "state.db");
});

test("P4: every open sets WAL and synchronous=FULL", () => {
  for (let time = 0; time < 2; time++) {
    const db = openDatabase(file, [first]);
    expect(db.pragma("journal_mode", { simple: true })).toBe("wal");
    expect(db.pragma("synchronous", { simple: true })).toBe(2);
    db.close();
  }
});

test("P4: a database that does not take synchronous=FULL is found out after the first write, and refused", () => {
  const sample = openSqlite(":memory:");
  const prototype = Object.getPrototypeOf(sample) as Pick<Sqlite, "pragma">;
  sample.close();
  const { pragma } = prototype;
  // As a build would that had the setting compiled out.
  prototype.pragma = function (this: Sqlite, text, options) {
    return text === "synchronous = FULL" ? [] : pragma.call(this, text, options);
  };
  try {
    expect(() => openDatabase(file, [first])).toThrow(/state\.db: expected synchronous=2 \(FULL\), got 1/);
  } finally {
    prototype.pragma = pragma;
  }
});

describe("works that are asked for at about the same time", () => {
  const grouped = () => {
    const db = openDatabase(file, [first]);
    let commits = 0;
    const defer: Defer = (act) => {
      commits++;
      setImmediate(act);
    };
    const group = groupCommits(db, { defer });
    const add = (x: number) => group.atomic(() => db.prepare("INSERT INTO t VALUES (?)").run(x).changes);
    const rows = () => db.prepare("SELECT x FROM t ORDER BY x").pluck().all();
    return { db, group, add, rows, commits: () => commits };
  };

  test("P4: share a commit, in their order, and are durable when they resolve", async () => {
    const { group, add, rows, commits } = grouped();
    const elsewhere = openSqlite(file, { readonly: true });
    const seen = await Promise.all([
      add(1).then(() => elsewhere.prepare("SELECT count(*) FROM t").pluck().get()),
      group.atomic(rows),
      add(2),
    ]);
    expect(seen).toEqual([2, [1], 1]);
    expect(commits()).toBe(1);
    await add(3);
    expect(commits()).toBe(2);
    expect(rows()).toEqual([1, 2, 3]);
  });

  test("one that throws takes only itself back", async () => {
    const { db, group, add, rows } = grouped();
    const broken = group.atomic(() => {
      db.prepare("INSERT INTO t VALUES (7)").run();
      throw new Error("no");
    });
    const [one, two, three] = await Promise.allSettled([add(1), broken, add(2)]);
    expect([one.status, two.status, three.status]).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(rows()).toEqual([1, 2]);
  });

  test("take a savepoint each, but one that has the commit to itself takes none: a large one would take hours", async () => {
    const begun: string[] = [];
    const verbose = (text?: unknown) => begun.push(/^[A-Z]+/.exec(String(text))?.[0] ?? "");
    const watched = groupCommits(openSqlite(":memory:", { verbose }));
    await Promise.all([watched.atomic(() => 1), watched.atomic(() => 2)]);
    expect(begun.filter((word) => word === "SAVEPOINT")).toHaveLength(2);
    begun.length = 0;
    expect(await watched.atomic(() => 3)).toBe(3);
    await expect(
      watched.atomic(() => {
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    expect(begun).toEqual(["BEGIN", "COMMIT", "BEGIN", "ROLLBACK"]);
  });

  describe("on a disk that is synced beside them", () => {
    const synced = () => {
      const db = openDatabase(file, [first]);
      const syncs: { resolve(): void; reject(error: Error): void }[] = [];
      const sync = () => new Promise<void>((resolve, reject) => syncs.push({ resolve, reject }));
      const resolved: number[] = [];
      const { atomic, commit } = groupCommits(db, { sync });
      const add = (x: number) =>
        atomic(() => db.prepare("INSERT INTO t VALUES (?)").run(x)).then(() => resolved.push(x));
      const rows = () => db.prepare("SELECT x FROM t ORDER BY x").pluck().all();
      return { syncs, resolved, add, commit, rows };
    };
    const turn = () => new Promise(setImmediate);

    test("P4: resolve only when they are synced; what is asked for meanwhile shares the next commit", async () => {
      const { syncs, resolved, add, rows } = synced();
      void add(1);
      await turn();
      void add(2);
      void add(3);
      await turn();
      expect(rows()).toEqual([1]);
      expect(syncs).toHaveLength(1);
      expect(resolved).toEqual([]);
      syncs[0]?.resolve();
      await turn();
      await turn();
      expect(resolved).toEqual([1]);
      expect(rows()).toEqual([1, 2, 3]);
      expect(syncs).toHaveLength(2);
      syncs[1]?.resolve();
      await turn();
      expect(resolved).toEqual([1, 2, 3]);
    });

    test("P4: are refused where the sync fails, and what is asked for next is not", async () => {
      const { syncs, add } = synced();
      const refused = add(1);
      await turn();
      const next = add(2);
      syncs[0]?.reject(new Error("the disk is gone"));
      await expect(refused).rejects.toThrow("the disk is gone");
      await turn();
      syncs[1]?.resolve();
      await next;
    });

    test("a database that closes waits for all of them", async () => {
      const { syncs, resolved, add, commit } = synced();
      void add(1);
      await turn();
      void add(2);
      const closed = commit().then(() => resolved.push(0));
      syncs[0]?.resolve();
      while (syncs.length < 2) await turn();
      syncs[1]?.resolve();
      await closed;
      expect(resolved).toEqual([1, 2, 0]);
    });
  });

  test("are all refused where the commit is, and none of them is there", async () => {
    const { db, add, rows } = grouped();
    db.pragma("busy_timeout = 0");
    const other = openSqlite(file);
    other.exec("BEGIN IMMEDIATE");
    const refused = await Promise.allSettled([add(1), add(2)]);
    expect(refused).toMatchObject([
      { status: "rejected", reason: { code: "SQLITE_BUSY" } },
      { status: "rejected", reason: { code: "SQLITE_BUSY" } },
    ]);
    other.exec("ROLLBACK");
    expect(rows()).toEqual([]);
    await add(3);
    expect(rows()).toEqual([3]);
  });
});

test("P19: a migration copies the database first and then changes all or nothing", () => {
  openDatabase(file, [first]).close();
  const broken: Migration = (db) => {
    db.exec("CREATE TABLE half (x)");
    throw new Error("broken step");
  };
  expect(() => openDatabase(file, [first, second, broken])).toThrow("broken step");
  const db = openSqlite(file);
  expect(db.pragma("user_version", { simple: true })).toBe(1);
  expect(db.prepare("SELECT name FROM pragma_table_info('t')").all()).toEqual([{ name: "x" }]);
  db.close();
  expect(readdirSync(dirname(file))).toEqual(["state.db"]);
  openDatabase(file, [first, second]).close();
  const copy = openSqlite(`${file}.schema-1.backup`);
  expect(copy.pragma("user_version", { simple: true })).toBe(1);
  copy.close();
  expect(readdirSync(dirname(file)).filter((name) => name.endsWith(".part"))).toEqual([]);
});

test("P19: a restored database is copied again, whatever is beside it, and no backup is overwritten", () => {
  const write = (x: number) => {
    const db = openDatabase(file, [first]);
    db.prepare("INSERT INTO t VALUES (?)").run(x);
    db.close();
  };
  const copied = (name: string) => {
    const copy = openSqlite(`${file}.schema-1.${name}`);
    const rows = copy.prepare("SELECT x FROM t").all();
    copy.close();
    return rows;
  };
  write(1);
  writeFileSync(`${file}.schema-1.backup`, "no backup");
  openDatabase(file, [first, second]).close();
  renameSync(`${file}.schema-1.2.backup`, file);
  write(2);
  writeFileSync(`${file}.schema-1.2.backup`, "no backup");
  openDatabase(file, [first, second]).close();
  expect(copied("3.backup")).toEqual([{ x: 1 }, { x: 2 }]);
  for (const name of ["backup", "2.backup"]) {
    expect(readFileSync(`${file}.schema-1.${name}`, "utf8")).toBe("no backup");
  }
});

/** Has `work` done by another connection once one that opens the database has read its version, before it acts on it. */
function betweenLookAndMigration(work: () => void, open: () => void): void {
  const sample = openSqlite(":memory:");
  const prototype = Object.getPrototypeOf(sample) as Pick<Sqlite, "pragma">;
  sample.close();
  const { pragma } = prototype;
  prototype.pragma = function (this: Sqlite, text, options) {
    const answer = pragma.call(this, text, options);
    if (text === "user_version" && prototype.pragma !== pragma) {
      prototype.pragma = pragma;
      work();
    }
    return answer;
  };
  try {
    open();
  } finally {
    prototype.pragma = pragma;
  }
}

const backups = () => readdirSync(dirname(file)).filter((name) => /backup|part/.test(name));

function versionOf(path: string): unknown {
  const db = openSqlite(path, { readonly: true });
  try {
    return db.pragma("user_version", { simple: true });
  } finally {
    db.close();
  }
}

test("P19: if two processes migrate together, one does, and the backup is of the database before it", () => {
  openDatabase(file, [first]).close();
  const migrated = () => openDatabase(file, [first, second]).close();
  betweenLookAndMigration(migrated, migrated);
  expect(backups()).toEqual(["state.db.schema-1.backup"]);
  expect(versionOf(`${file}.schema-1.backup`)).toBe(1);
});

test("P19: a database that a newer program migrates in the meantime is refused, and keeps its version", () => {
  openDatabase(file, [first]).close();
  const third: Migration = (db) => db.exec("CREATE TABLE u (x)");
  const newer = () => openDatabase(file, [first, second, third]).close();
  expect(() => betweenLookAndMigration(newer, () => openDatabase(file, [first, second]))).toThrow(
    NewerDatabase,
  );
  expect(versionOf(file)).toBe(3);
  expect(backups()).toEqual(["state.db.schema-1.backup"]);
});

test("P19: many processes that migrate together leave one whole database and one whole backup", async () => {
  const db = openDatabase(file, [first]);
  const insert = db.prepare("INSERT INTO t VALUES (?)");
  db.transaction(() => {
    for (let row = 0; row < 20_000; row++) insert.run("x".repeat(100));
  })();
  db.close();
  const script = `
    const { openDatabase } = await import(${JSON.stringify(new URL("../../dist/store/open.js", import.meta.url).href)});
    const steps = [() => {}, (db) => db.exec("ALTER TABLE t ADD COLUMN y")];
    process.stdout.write("ready");
    await new Promise((resolve) => process.stdin.on("end", resolve).resume());
    openDatabase(${JSON.stringify(file)}, steps).close();`;
  const children = Array.from({ length: 3 }, () =>
    spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", "inherit"] }),
  );
  await Promise.all(children.map(({ stdout }) => once(stdout, "data")));
  const ended = children.map((child) => once(child, "exit"));
  for (const { stdin } of children) stdin.end();
  expect(await Promise.all(ended)).toEqual(children.map(() => [0, null]));
  expect(backups()).toEqual(["state.db.schema-1.backup"]);
  expect([versionOf(file), versionOf(`${file}.schema-1.backup`)]).toEqual([2, 1]);
  const copy = openSqlite(`${file}.schema-1.backup`, { readonly: true });
  expect(copy.prepare("SELECT count(*) FROM t").pluck().get()).toBe(20_000);
  copy.close();
});

test("P19: a database of a newer program is refused and left as it is", () => {
  openDatabase(file, [first, second]).close();
  expect(() => openDatabase(file, [first])).toThrow(NewerDatabase);
  expect(() => openDatabase(file, [first])).toThrow("expected schema 1 or older, got 2");
  expect(existsSync(`${file}.schema-2.backup`)).toBe(false);
});
