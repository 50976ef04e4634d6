import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { EarlyExit } from "../core/exit.js";
import { noFolderSync } from "../core/ports/disk.js";
import { copyOf, named, openSqlite, type Sqlite, statements } from "../sqlite.js";
import { makeFolders } from "../whole-file.js";

/** One version of a schema. A released version is never edited: the next change is another version. */
export type Migration = (db: Sqlite) => void;

export class NewerDatabase extends Error {
  override readonly name = "NewerDatabase";
}

/** A database on a server that cannot be used now. */
export class DatabaseTrouble extends Error {
  override readonly name = "DatabaseTrouble";

  /** `todo` is what a person can do about it. */
  constructor(
    message: string,
    readonly todo: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * Opens a database so that commits survive a power loss: WAL with `synchronous=FULL`. The setting belongs to the
 * connection, and the build of better-sqlite3 has another default for WAL, so it is set at every open and read back after
 * the first write. Migrates the schema in one transaction, after a backup beside the file. Throws NewerDatabase for a
 * database of a newer bulkgen.
 */
export function openDatabase(path: string, migrations: readonly Migration[]): Sqlite {
  if (path !== ":memory:" && existsSync(path) && !mayWrite(path)) return openCopy(path, migrations);
  let db: Sqlite | null = null;
  try {
    if (path !== ":memory:") makeOwnFile(path);
    db = openSqlite(path);
    db.pragma("busy_timeout = 10000");
    if (path !== ":memory:") db.pragma("journal_mode = WAL");
    db.pragma("synchronous = FULL");
    db.pragma("foreign_keys = ON");
    // What a savepoint would restore is kept in memory; else each group of writes copies its pages to a temporary file.
    db.pragma("temp_store = MEMORY");
    migrate(db, path, migrations);
    refuseForeignCode(db, path, migrations);
    db.prepare("UPDATE opened SET count = count + 1").run();
    const level = db.pragma("synchronous", { simple: true });
    if (level !== 2) throw new Error(`SQLite at ${path}: expected synchronous=2 (FULL), got ${level}`);
    return db;
  } catch (error) {
    db?.close();
    throw named(path, error);
  }
}

/**
 * Whether this user may write a database and what SQLite puts beside it. Who may only read it is not shut out of commands
 * that only read.
 */
function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    accessSync(dirname(path), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Opens a database to read it, also where this user may write neither the file nor its folder. */
export function openReadOnly(path: string): Sqlite {
  try {
    const db = openSqlite(path, { readonly: true, fileMustExist: true, timeout: 10_000 });
    db.pragma("schema_version");
    return db;
  } catch (error) {
    // Without a write-ahead log beside it, SQLite would have to make one before it reads.
    if (!refusedByDisk(error) || mayWrite(path)) throw error;
    return openCopy(path, []);
  }
}

/**
 * A copy of a database in the folder for temporary files, with the newest schema, which refuses every write. Nothing but the
 * open file is left of it.
 */
function openCopy(path: string, migrations: readonly Migration[]): Sqlite {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-read-"));
  let db: Sqlite | null = null;
  try {
    const copy = join(folder, basename(path));
    for (const end of ["", "-wal"])
      if (existsSync(path + end)) {
        copyFileSync(path + end, copy + end);
        chmodSync(copy + end, 0o600);
      }
    db = openSqlite(copy);
    copyOf(copy, path);
    db.pragma("journal_mode = DELETE");
    // A reader without migrations checks for itself what it reads.
    if (migrations.length > 0) {
      migrate(db, ":memory:", migrations);
      refuseForeignCode(db, path, migrations);
    }
    db.pragma("temp_store = MEMORY");
    db.pragma("query_only = ON");
    return db;
  } catch (error) {
    db?.close();
    throw named(path, error);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The permissions of a folder with what is nobody else's business. */
export const ownFolder = 0o700;

/**
 * Makes the file of a database, if there is none: what was paid for, prompts and the account are nobody else's business. SQLite
 * gives its log the same permissions. A file that is there keeps those that its owner gave it.
 */
export function makeOwnFile(path: string): void {
  makeFolder(dirname(path), ownFolder);
  if (existsSync(path)) return;
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/**
 * A database may have come from somebody else. A trigger or view of theirs would run inside of our queries. Throws EarlyExit
 * for one that is not of our schema.
 */
export function refuseForeignCode(db: Sqlite, path: string, migrations: readonly Migration[]): void {
  const found = codeIn(db);
  if (found.length === 0) return;
  const own = ownCode(migrations);
  const foreign = found.find(({ sql }) => !own.has(sql));
  if (foreign === undefined) return;
  throw strangeState(
    path,
    `has the ${foreign.type} ${JSON.stringify(foreign.name)}, which bulkgen did not make`,
  );
}

/** The refusal of a database with something in it that bulkgen never writes. */
export function strangeState(path: string, what: string): EarlyExit {
  return new EarlyExit(
    "usage",
    `${path} ${what}: somebody else may have changed it. Nothing was changed and nothing was sent. Restore the file from a backup, or remove it and run \`bulkgen doctor --rebuild\`, which makes a new one from receipts and archive.`,
  );
}

interface Code {
  type: string;
  name: string;
  sql: string;
}

function codeIn(db: Sqlite): Code[] {
  return db
    .prepare("SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')")
    .all() as Code[];
}

const codeOf = new WeakMap<readonly Migration[], ReadonlySet<string>>();

function ownCode(migrations: readonly Migration[]): ReadonlySet<string> {
  const known = codeOf.get(migrations);
  if (known !== undefined) return known;
  const db = openSqlite(":memory:");
  try {
    for (const step of migrations) step(db);
    const made = new Set(codeIn(db).map(({ sql }) => sql));
    codeOf.set(migrations, made);
    return made;
  } finally {
    db.close();
  }
}

/** Throws SQLite's error if any page of a database is damaged. A query notices only the pages that it reads. */
export function refuseDamaged(path: string): void {
  const db = openReadOnly(path);
  try {
    const found = String(db.pragma("quick_check(1)", { simple: true }));
    if (found === "ok") return;
    const what = found.trim().split("\n").at(-1);
    throw Object.assign(new Error(`${path}: damaged (${what})`), { code: "SQLITE_CORRUPT" });
  } finally {
    db.close();
  }
}

/** Whether the disk refused a write: it is full, gone or read-only. */
export function refusedByDisk(error: unknown): error is Error {
  const { code } = (error ?? {}) as { code?: unknown };
  return error instanceof Error && /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN)/.test(String(code));
}

function migrate(db: Sqlite, path: string, migrations: readonly Migration[]): void {
  if (schemaOf(db, path, migrations.length) === migrations.length) return;
  let backup: string | null = null;
  try {
    db.transaction(() => {
      // Another process may have migrated before this transaction began.
      const found = schemaOf(db, path, migrations.length);
      if (found === migrations.length) return;
      if (found > 0 && path !== ":memory:") {
        backup = freeName(`${path}.schema-${found}`);
        // VACUUM INTO needs a second connection. The lock of this transaction keeps all others from writing.
        copyDatabase(path, backup);
      }
      for (const step of migrations.slice(found)) step(db);
      db.pragma(`user_version = ${migrations.length}`);
    }).immediate();
  } catch (error) {
    // Nothing was changed, and each try would leave another backup.
    if (backup !== null) rmSync(backup, { force: true });
    throw error;
  }
}

/** The schema version of the database. Throws NewerDatabase for a version that this program does not know. */
export function schemaOf(db: Sqlite, path: string, newest: number): number {
  const found = db.pragma("user_version", { simple: true }) as number;
  if (found <= newest) return found;
  throw new NewerDatabase(
    `${path} was written by a newer bulkgen: expected schema ${newest} or older, got ${found}; update bulkgen`,
  );
}

/** An existing backup is neither overwritten nor reused: an older database may have been restored since. */
function freeName(stem: string): string {
  let name = `${stem}.backup`;
  for (let number = 2; existsSync(name); number++) name = `${stem}.${number}.backup`;
  return name;
}

/** Runs work in a transaction with a write lock from its start, and rolls back when the work throws. */
export type Atomic = <Result>(work: () => Result) => Result;

/** One wrapper for all work: better-sqlite3 builds a new one for each function that it runs in a transaction. */
export function transactions(db: Sqlite): Atomic {
  const run = db.transaction((work: () => unknown) => work());
  return <Result>(work: () => Result) => {
    try {
      return run.immediate(work) as Result;
    } catch (error) {
      throw named(db.name, error);
    }
  };
}

/**
 * Runs work in a transaction as `Atomic` does, and resolves when it is durable. Writes requested in one turn of the event
 * loop, or while an earlier commit is being synced, share one commit. Each of several is a savepoint of its own, so one
 * that throws undoes only itself.
 */
export type Grouped = <Result>(work: () => Result) => Promise<Result>;

export interface GroupCommits {
  atomic: Grouped;
  /** Commits what was requested until now, and resolves when it is durable. */
  commit(): Promise<void>;
}

/** Runs something later in this turn of the event loop, or at its end. */
export type Defer = (act: () => void) => void;

/** At the end of this turn of the event loop. */
export const nextTurn: Defer = setImmediate;

export interface Committing {
  defer?: Defer;
  /** Makes durable what is committed, if SQLite does not do so itself. */
  sync?: () => Promise<void>;
}

export function groupCommits(db: Sqlite, { defer = nextTurn, sync }: Committing = {}): GroupCommits {
  const atomic = transactions(db);
  const savepoint = db.transaction((work: () => unknown) => work());
  let waiting: PendingWrite[] = [];
  let syncing: Promise<void> | null = null;

  const next = () => {
    if (syncing === null && waiting.length > 0) commitGroup();
  };
  const commitGroup = () => {
    const group = waiting;
    waiting = [];
    const refuse = (error: unknown) => {
      for (const { reject } of group) reject(error);
    };
    try {
      const answers = atomic(() => group.map(answerOf(group.length === 1)));
      const resolve = () => {
        for (const answer of answers) answer();
      };
      if (sync) syncing = sync().then(resolve, refuse).then(synced);
      else resolve();
    } catch (error) {
      refuse(error);
    }
  };
  const synced = () => {
    syncing = null;
    if (waiting.length > 0) defer(next);
  };
  // Each statement of a savepoint walks through all that the savepoint would restore: of a write that changes each of a
  // million items, that takes hours. One that has the commit to itself is undone with it.
  const answerOf = (isAlone: boolean) => (pending: PendingWrite) => {
    try {
      const result = isAlone ? pending.work() : savepoint(pending.work);
      return () => pending.resolve(result);
    } catch (error) {
      // Some errors, such as a full disk, end the transaction and with it the whole group.
      if (isAlone || !db.inTransaction) throw error;
      return () => pending.reject(named(db.name, error));
    }
  };
  return {
    atomic: <Result>(work: () => Result) =>
      new Promise<Result>((resolve, reject) => {
        waiting.push({ work, resolve: resolve as (result: unknown) => void, reject });
        if (waiting.length === 1 && syncing === null) defer(next);
      }),
    async commit() {
      while (syncing !== null || waiting.length > 0) {
        next();
        await syncing;
      }
    },
  };
}

interface PendingWrite {
  work(): unknown;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** Copies a database, including its write-ahead log. Throws SQLite's error. */
export function copyDatabase(from: string, to: string): void {
  const db = openSqlite(from, { fileMustExist: true });
  try {
    copyInto(db, to);
  } finally {
    db.close();
  }
}

/** Copies an open database. The copy has its name only when it is complete and durable. */
export function copyInto(db: Sqlite, to: string): void {
  const part = `${to}.part`;
  rmSync(part, { force: true });
  statements(db)("VACUUM INTO ?").run(part);
  chmodSync(part, 0o600);
  syncPath(part);
  renameSync(part, to);
  syncNames(dirname(to));
}

/** Makes a file, or the names in a folder, durable. */
function syncPath(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Makes the names in a folder durable, where the file system can: without that a new name may be gone after a power cut. */
export function syncNames(folder: string): void {
  try {
    syncPath(folder);
  } catch (error) {
    if (!noFolderSync.has(String((error as NodeJS.ErrnoException).code))) throw error;
  }
}

/** A folder with all above it, whose names are durable. */
export function makeFolder(path: string, mode = 0o777): void {
  const first = makeFolders(path, mode);
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) syncNames(dirname(made));
}

/** What to do about a damaged database, by its file name. */
const whereDamaged: Readonly<Record<string, string>> = {
  "state.db":
    "restore it from a backup, or rebuild it from the receipts and the archive with `bulkgen doctor --rebuild`",
  "accounts.db":
    "it contains what all workspaces share: the quota ledger and the spend log. Restore it from a backup. Or move it away with its -wal and -shm files while no bulkgen runs, and bulkgen starts a new one: it then counts neither the requests sent so far nor the credits spent today (--max-credits-per-day), does not know what other workspaces have paid for, learns durations again, and holds paid requests without an answer for you to decide. No task and no file is lost",
  "service.db":
    "it contains the sandbox's accounts and tasks, which cost nothing. Move it away with its -wal and -shm files while no sandbox runs, and bulkgen starts a new one",
  "schedules.db":
    "it contains the schedules and the record of their runs. Restore it from a backup. Or move it away with its -wal and -shm files while no daemon runs, and add the schedules again with `bulkgen schedule add`. No run is lost",
};

/**
 * What a person can do about the error of a database or of a file of the workspace; null when that is not known. Only a
 * damaged database needs replacing: one of a newer program, or on a full disk, is intact.
 */
export function wayOut(error: unknown): string | null {
  const { code, message, path } = error as NodeJS.ErrnoException;
  if (error instanceof NewerDatabase) return "update bulkgen";
  if (error instanceof DatabaseTrouble) return error.todo;
  if ((error as Error).name === "SqliteMissing")
    return "install bulkgen again with this Node: SQLite is one of its optional packages";
  if (path !== undefined && /^(EACCES|EPERM|EROFS)$/.test(String(code)))
    return `let this user read and write ${path}`;
  if (/^(EMFILE|ENFILE)$/.test(String(code)) || (code === "SQLITE_CANTOPEN" && isWritableFile(message)))
    return moreFiles;
  switch (/^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|PERM|BUSY|CORRUPT|NOTADB)/.exec(String(code))?.[1]) {
    case "FULL":
      return "free some space on its disk";
    case "IOERR":
      return "check that its disk has free space and is writable";
    case "READONLY":
    case "CANTOPEN":
    case "PERM":
      return "make it and its folder writable";
    case "BUSY":
      return "another process is writing to it: try again when that process has ended";
    case "CORRUPT":
    case "NOTADB":
      return damaged(message);
    default:
      return null;
  }
}

const moreFiles =
  "this process may not open more files: raise the limit with `ulimit -n 1024` and run the command again";

/** Whether the error names a database that this user may write: then SQLite could not open it for want of descriptors. */
function isWritableFile(message: string): boolean {
  const [path = ""] = message.split(": unable to open");
  return (statSync(path, { throwIfNoEntry: false })?.isFile() ?? false) && mayWrite(path);
}

/** Whether the disk or another process keeps a database from being opened, so that its content is unknown. */
export function isRefused(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return refusedByDisk(error) || /^SQLITE_(PERM|BUSY)/.test(String(code));
}

function damaged(message: string): string | null {
  if (/[/\\]sandbox[/\\]state\.db: /.test(message))
    return "nothing in it was paid for: rebuild it with `bulkgen doctor --sandbox --rebuild`, or remove it";
  if (/\.lock: /.test(message)) return "it holds no data: remove it while no bulkgen runs";
  return whereDamaged[/([a-z]+\.db): /.exec(message)?.[1] ?? ""] ?? null;
}

/** How to make a file or folder (`what`) writable, by the system's error code. */
export function madeWritable(code: string | undefined, what: string): string {
  switch (code) {
    case "ENOSPC":
    case "EDQUOT":
      return `free some space for ${what}`;
    case "EMFILE":
    case "ENFILE":
      return `raise the number of files that a process may open (\`ulimit -n 1024\`) for ${what}`;
    case "ENOTDIR":
    case "EEXIST":
      return `see that no file lies in the way of ${what}`;
    default:
      return `make ${what} writable`;
  }
}
