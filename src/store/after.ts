import { statements } from "../sqlite.js";
import { type Migration, openDatabase } from "./open.js";

/**
 * Which commands after files and sets have done their work, so that none is run twice for the same file. The file is in the
 * state folder of a workspace, on the machine that ran them; without it they are run again, which buys nothing.
 */
export interface AfterRecord {
  has(work: AfterWork): boolean;
  add(work: AfterWork, at: number): void;
  close(): void;
}

export interface AfterWork {
  /** Exactly as it was run. */
  command: string;
  /** Which file with which content, or which set of them. */
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
];

/** Makes the file if there is none. */
export function openAfterRecord(path: string): AfterRecord {
  const db = openDatabase(path, migrations);
  const sql = statements(db);
  const selected = "SELECT id FROM commands WHERE command = ?";
  return {
    has: ({ command, of }) =>
      sql(`SELECT 1 FROM done WHERE command = (${selected}) AND work = ?`).get(command, of) !== undefined,
    add: db.transaction(({ command, of }: AfterWork, at: number) => {
      sql("INSERT INTO commands (command) VALUES (?) ON CONFLICT DO NOTHING").run(command);
      sql(`INSERT INTO done VALUES ((${selected}), ?, ?) ON CONFLICT DO NOTHING`).run(command, of, at);
    }),
    close: () => db.close(),
  };
}
