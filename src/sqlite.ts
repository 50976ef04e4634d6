import { lstatSync } from "node:fs";
import { createRequire } from "node:module";
import type BetterSqlite3 from "better-sqlite3";

/**
 * The one way to SQLite. better-sqlite3 12 is the newest that runs on Node 20 but aborts on Node 24; 13 speaks
 * Node-API 10 and crashes Node 20. Both have one interface, so the running Node decides which one is loaded. 13 brings its
 * machine code along; that of 12 is downloaded or compiled when it is installed. Both are optional packages, so that an
 * installation needs no compiler for the one that is not used.
 */
export type Sqlite = BetterSqlite3.Database;
export type SqliteOptions = BetterSqlite3.Options;

type Constructor = new (path: string, options?: SqliteOptions) => Sqlite;

const require = createRequire(import.meta.url);

const needsNoCompiler = Number(process.versions.napi) >= 10;

function load(): Constructor {
  const Native = (
    needsNoCompiler ? require("better-sqlite3-napi") : require("better-sqlite3")
  ) as Constructor;
  return class extends Native {
    override pragma(source: string, options?: BetterSqlite3.PragmaOptions): unknown {
      try {
        return super.pragma(source, options);
      } catch (error) {
        throw named(this.name, error);
      }
    }

    override exec(source: string): this {
      try {
        return super.exec(source);
      } catch (error) {
        throw named(this.name, error);
      }
    }
  };
}

let Database: Constructor | undefined;

/** SQLite's machine code was not installed, or is another Node's. */
class SqliteMissing extends Error {
  override readonly name = "SqliteMissing";
}

/**
 * Opens a database file (or ":memory:"). Throws SqliteMissing, or SQLite's own error, with the file's name, when it cannot
 * be opened.
 */
export function openSqlite(path: string, options: SqliteOptions = {}): Sqlite {
  if (path !== "" && path !== ":memory:") refuseLink(path);
  try {
    Database ??= load();
    return new Database(path, options);
  } catch (error) {
    if (!cannotLoad(error)) throw named(path, error);
    throw new SqliteMissing(
      `SQLite cannot be loaded by Node ${process.versions.node}: ${whyMissing(error)}`,
      { cause: error },
    );
  }
}

/** SQLite would follow it, to a file of the user's that a folder from somebody else may name. */
function refuseLink(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
    throw Object.assign(new Error(`${path} is a symbolic link; expected a file`), { code: "ELOOP" });
}

function whyMissing(error: unknown): string {
  if (needsNoCompiler)
    return "optional packages were left out when bulkgen was installed, or Node has changed since. Nothing was sent. Install bulkgen again with this Node and with its optional packages";
  if ((error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND")
    return "it could be neither downloaded nor compiled when bulkgen was installed. Nothing was sent. Install bulkgen again where Python, make and a C++ compiler are, or with Node 22.14 or newer, which needs none of them";
  return "the install script of better-sqlite3 was not allowed to run, or Node has changed since. Nothing was sent. Run `npm rebuild better-sqlite3` where bulkgen is installed (with -g, if it was installed so)";
}

/** The package is not there, its machine code is another Node's, or it has none, which only the message shows. */
function cannotLoad(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  return (
    code === "MODULE_NOT_FOUND" ||
    code === "ERR_DLOPEN_FAILED" ||
    /^Could not locate the bindings file/.test(message)
  );
}

const originals = new Map<string, string>();

/** Errors of a database that is a copy are to name the file that the user knows. */
export function copyOf(copy: string, original: string): void {
  originals.set(copy, original);
}

/**
 * SQLite does not say which database it speaks of, and damage may show in any query. So wherever an error is caught, the
 * file's name is put before its message, once; that name then selects the advice for the user. A column whose JSON cannot
 * be read is damage that SQLite does not see.
 */
export function named(given: string, error: unknown): unknown {
  const path = originals.get(given) ?? given;
  const isFile = path !== "" && path !== ":memory:";
  if (isFile && error instanceof SyntaxError)
    return Object.assign(new Error(`${path}: a value in it is damaged`, { cause: error }), {
      code: "SQLITE_CORRUPT",
    });
  const { code } = error as { code?: unknown };
  const isOfFile = isFile && String(code).startsWith("SQLITE_");
  if (isOfFile && error instanceof Error && !error.message.startsWith(`${path}: `))
    error.message = `${path}: ${error.message}`;
  return error;
}

/** Returns the statement of a text. */
export type Sql = (text: string) => Statement;

/** Statements by their text: each is prepared once per connection. */
export function statements(db: Sqlite): Sql {
  const prepared = new Map<string, Statement>();
  return (text) => {
    let statement = prepared.get(text);
    if (!statement) {
      statement = made(db, text);
      prepared.set(text, statement);
    }
    return statement;
  };
}

function made(db: Sqlite, text: string): Statement {
  try {
    return new Statement(db.prepare(text));
  } catch (error) {
    throw named(db.name, error);
  }
}

/**
 * A prepared statement whose rows are objects by column. better-sqlite3 makes such objects too, one property at a time
 * through the engine's interface, which takes longer than the query if rows are wide; so it is asked for arrays, and the
 * objects are made here.
 */
export class Statement {
  private columns = 0;
  private objectOf: (row: unknown[]) => unknown = () => undefined;

  constructor(private readonly prepared: BetterSqlite3.Statement<unknown[]>) {
    if (prepared.reader) prepared.raw();
  }

  /** For a statement that returns no rows: how many it changed, and the last row id. */
  run(...values: unknown[]): BetterSqlite3.RunResult {
    try {
      return this.prepared.run(...values);
    } catch (error) {
      throw this.namingFile(error);
    }
  }

  /** The first row, or undefined if there is none. */
  get(...values: unknown[]): unknown {
    const row = this.first(values);
    return row === undefined ? undefined : this.object(row);
  }

  all(...values: unknown[]): unknown[] {
    try {
      return (this.prepared.all(...values) as unknown[][]).map((row) => this.object(row));
    } catch (error) {
      throw this.namingFile(error);
    }
  }

  /** The first column of the first row, or undefined if there is none. */
  value(...values: unknown[]): unknown {
    return this.first(values)?.[0];
  }

  private first(values: readonly unknown[]): unknown[] | undefined {
    try {
      return this.prepared.get(...values) as unknown[] | undefined;
    } catch (error) {
      throw this.namingFile(error);
    }
  }

  private namingFile(error: unknown): unknown {
    return named(this.prepared.database.name, error);
  }

  private object(row: unknown[]): unknown {
    // Another process may add columns to a table while this one runs, and `*` has them from then on.
    if (row.length !== this.columns) {
      this.columns = row.length;
      this.objectOf = maker(this.prepared.columns().map(({ name }) => name));
    }
    return this.objectOf(row);
  }
}

/**
 * Makes an object with these names of a row's values, by generated code, so that all rows have one shape for the engine.
 */
function maker(names: readonly string[]): (row: unknown[]) => unknown {
  const fields = names.map((name, index) => `${JSON.stringify(name)}: row[${index}]`);
  return new Function("row", `return { ${fields.join(", ")} };`) as (row: unknown[]) => unknown;
}
