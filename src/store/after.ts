import { statements } from "../sqlite.js";
import { type Migration, openDatabase } from "./open.js";

/**
 * Which commands after files and sets have done their work, so that none is run twice for the same file, or for a set that
 * is as it was. The record is in the state folder of a workspace, on the machine that ran them; without it they are run again,
 * which buys nothing.
 */
export interface AfterRecord {
  has(work: AfterWork): boolean;
  add(work: AfterWork, at: number): void;
  /** The state of the set for which its command did its work last; null if it never did. */
  lastState(work: AfterWork): string | null;
  /** The command has done its work for the set in this state. */
  doneFor(work: AfterWork, state: string, at: number): void;
  close(): void;
}

export interface AfterWork {
  /** Exactly as it was run. */
  command: string;
  /** Which file with which content, or which set. */
  of: string;
}

const migrations: readonly Migration[] = [
  (db) =>
    db.exec(`
      CREATE TABLE opened (count INTEGER NOT NULL);
      INSERT INTO opened VALUES (0);
      CREATE TABLE commands (id INTEGER PRIMARY KEY, command TEXT NOT NULL UNIQUE);
      CREATE TABLE done (
        command INTEGER NOT NULL REFERENCES commands (id),
        work TEXT NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (command, work)
      ) WITHOUT ROWID;
    `),
  // Until then every state of a set was kept among the files, for ever.
  (db) =>
    db.exec(`
      DELETE FROM done WHERE work LIKE 'set' || char(10) || '%';
      CREATE TABLE sets (
        command INTEGER NOT NULL REFERENCES commands (id),
        work TEXT NOT NULL,
        state TEXT NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (command, work)
      ) WITHOUT ROWID;
    `),
];

/** Makes the file if there is none. */
export function openAfterRecord(path: string): AfterRecord {
  const db = openDatabase(path, migrations);
  const sql = statements(db);
  const selected = "SELECT id FROM commands WHERE command = ?";
  const know = (command: string) =>
    sql("INSERT INTO commands (command) VALUES (?) ON CONFLICT DO NOTHING").run(command);
  return {
    has: ({ command, of }) =>
      sql(`SELECT 1 FROM done WHERE command = (${selected}) AND work = ?`).get(command, of) !== undefined,
    add: db.transaction(({ command, of }: AfterWork, at: number) => {
      know(command);
      sql(`INSERT INTO done VALUES ((${selected}), ?, ?) ON CONFLICT DO NOTHING`).run(command, of, at);
    }),
    lastState: ({ command, of }) => {
      const found = sql(`SELECT state FROM sets WHERE command = (${selected}) AND work = ?`).get(command, of);
      return (found as { state: string } | undefined)?.state ?? null;
    },
    doneFor: db.transaction(({ command, of }: AfterWork, state: string, at: number) => {
      know(command);
      sql(
        `INSERT INTO sets VALUES ((${selected}), ?, ?, ?)
         ON CONFLICT (command, work) DO UPDATE SET state = excluded.state, at = excluded.at`,
      ).run(command, of, state, at);
    }),
    close: () => db.close(),
  };
}
