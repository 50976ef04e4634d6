import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import type { Clock, Random } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { Sqlite } from "../../sqlite.js";
import { accountsMigrations } from "../../store/accounts/accounts-schema.js";
import { finish, sqliteQueries } from "../../store/on-sqlite.js";
import { openDatabase, syncNames } from "../../store/open.js";
import type { DatabaseAddress } from "../../store/postgres/address.js";
import type { LockedPostgres } from "../../store/postgres/connect.js";
import {
  checkFiles,
  empty,
  fromServer,
  isEmpty,
  joinAccounts,
  toServer,
  UsedOnBothSides,
} from "../../store/postgres/transfer.js";
import type { Queries, Script } from "../../store/script.js";
import { workspaceMigrations } from "../../store/workspace/workspace-schema.js";
import { count } from "../../text/amounts.js";
import { isRehearsal, refuseOutdated } from "../history.js";
import { createIdentity, readIdentity, writeIdentity } from "../identity.js";
import { loggedWorkspace, withStore } from "../state.js";
import type { Workspace } from "../workspace.js";
import { lockState } from "./state-folder.js";

/**
 * Moves the state of a workspace between files of this machine and a PostgreSQL database. At every instant exactly one of
 * the two places may be used. A mark in the database (the table `moved`) says that the state is in files; without it, the
 * note in the folder (`workspace.json`) does. What counts is changed in one step on each side, so that after a crash the
 * old place is still good, or the same command finishes the move.
 */
export interface MigrateJob {
  /** Found without a database. */
  workspace: Workspace;
  address: DatabaseAddress;
  clock: Clock;
  random: Random;
  /** Called between the steps, for tests of crashes. */
  onStep?(step: "copied" | "noted"): void;
}

/** What was moved. */
export interface Migrated {
  items: number;
  attempts: number;
  /** Requests in the spend log of the accounts that came along. */
  spendLog: number;
}

/** Files → database. Throws EarlyExit for each refusal. */
export async function migrateToServer({ workspace, address, clock, onStep }: MigrateJob): Promise<Migrated> {
  const { stateFile, accountsFile, markerFolder } = workspace;
  const identity = isRehearsal(workspace) ? null : readIdentity(markerFolder);
  const [place, note] = [placeOf(workspace), { ...workspace, database: address }];
  if (!existsSync(stateFile)) {
    if (identity?.database === address.shown)
      throw new EarlyExit(
        "done",
        `the state of ${workspace.root} is in ${address.shown} already; nothing was changed`,
      );
    throw refused(`there is no state in ${stateFile}`, "Name the state.db of a workspace with --from.");
  }
  const release = lockState(dirname(stateFile), dirname(stateFile), clock);
  try {
    const server = await locked(address, clock);
    try {
      if (identity?.database === address.shown) {
        // It was cut short after the folder's note was written: the copy is complete.
        await server.atomic(function* () {
          yield* refuseEmpty(server.sql, address);
          yield* unmark(server.sql);
        });
      } else {
        if (identity?.database !== undefined)
          throw refused(
            `the state of ${workspace.root} is in ${identity.database}`,
            "Move it back to files first.",
          );
        await withStore(workspace, clock, (store) => refuseOutdated(workspace, store));
        const files = {
          state: openDatabase(stateFile, workspaceMigrations),
          accounts: openDatabase(accountsFile, accountsMigrations),
        };
        try {
          // Other workspaces may write to it meanwhile.
          files.accounts.exec("BEGIN");
          refuseSubmitting(finish(submitting(sqliteQueries(files.state))));
          await server.atomic(function* () {
            const mark = (yield* server.sql("SELECT place FROM moved").value()) as string | undefined;
            // Its data is not in use: the state was moved out of it, or a move into it was interrupted.
            if (mark === place) yield* empty(server.sql);
            if (mark !== undefined && mark !== place)
              throw refused(
                `${address.shown} had the state that is now in ${mark}`,
                "Name another schema with ?schema=NAME.",
              );
            if (!(yield* isEmpty(server.sql)))
              throw refused(
                `${address.shown} has a state already`,
                "Name another schema with ?schema=NAME at the end of the address.",
              );
            yield* toServer(files, server.sql, {
              from: loggedWorkspace(workspace).name,
              to: loggedWorkspace(note).name,
            });
            yield* unmark(server.sql);
            yield* server.sql("INSERT INTO moved VALUES (?)").run(place);
          });
        } finally {
          files.state.close();
          files.accounts.close();
        }
        onStep?.("copied");
        if (identity !== null) writeIdentity(markerFolder, { ...identity, database: address.shown });
        onStep?.("noted");
        await server.atomic(() => unmark(server.sql));
      }
      // From here on the file must not be taken for a state.
      for (const end of ["-wal", "-shm"]) rmSync(`${stateFile}${end}`, { force: true });
      renameSync(stateFile, freePath(`${stateFile}.moved`));
      syncNames(dirname(stateFile));
      return await server.read(() => amounts(server.sql));
    } finally {
      await server.release();
    }
  } finally {
    release();
  }
}

/** A folder's note may name a database that never had its state: then the file beside the note is all there is. */
function* refuseEmpty(sql: Queries, { shown }: DatabaseAddress): Script<void> {
  if (yield* isEmpty(sql)) throw refused(`${shown} has no state`, "Check the address.");
}

/** Database → files. Throws EarlyExit for each refusal. */
export async function migrateToFiles({
  workspace,
  address,
  clock,
  random,
  onStep,
}: MigrateJob): Promise<Migrated> {
  const { stateFile, accountsFile, markerFolder, root } = workspace;
  mkdirSync(dirname(stateFile), { recursive: true });
  const isNew = !isRehearsal(workspace) && !existsSync(stateFile) && readIdentity(markerFolder) === null;
  // Until the move is complete, the folder says that the state is in the database.
  if (isNew)
    createIdentity(markerFolder, {
      id: random.uuid(),
      state: null,
      host: hostname(),
      why: null,
      database: address.shown,
    });
  const identity = isRehearsal(workspace) ? null : readIdentity(markerFolder);
  const place = placeOf(workspace);
  if (identity?.database !== undefined && identity.database !== address.shown)
    throw refused(
      `the state of ${root} is in ${identity.database}, not in ${address.shown}`,
      "Name that address with --from.",
    );
  const release = lockState(dirname(stateFile), dirname(stateFile), clock);
  try {
    const server = await locked(address, clock);
    try {
      await server.atomic(function* () {
        const mark = (yield* server.sql("SELECT place FROM moved").value()) as string | undefined;
        // The files were complete before the mark was made.
        if (mark === place && existsSync(stateFile)) return;
        if (mark !== undefined)
          throw refused(`the state is not in ${address.shown}, but in ${mark}`, "Use it there.");
        if (existsSync(stateFile)) {
          // The folder's note says that the file is not in use: it is left from a move that was cut short.
          if (identity?.database === undefined && !isRehearsal(workspace))
            throw refused(`${stateFile} has a state already`, "Name another folder with --to.");
          yield* refuseEmpty(server.sql, address);
          renameSync(stateFile, freePath(`${stateFile}.unused`));
        }
        refuseSubmitting(yield* submitting(server.sql));
        yield* fill(workspace, server, {
          from: loggedWorkspace({ stateFile, database: address }).name,
          to: loggedWorkspace(workspace).name,
        });
        onStep?.("copied");
        yield* server.sql("INSERT INTO moved VALUES (?)").run(place);
      });
      onStep?.("noted");
      if (identity !== null) {
        const { database: _, ...rest } = identity;
        writeIdentity(markerFolder, rest);
      }
      return await server.read(() => amounts(server.sql));
    } finally {
      await server.release();
    }
  } finally {
    release();
  }

  /** Makes the state file, which has its name only when it is complete, after the accounts have been joined. */
  function* fill(
    { stateFile: file }: Workspace,
    { sql }: LockedPostgres,
    renamed: { from: string; to: string },
  ): Script<void> {
    const part = `${file}.part`;
    remove(part);
    const state = openDatabase(part, workspaceMigrations);
    const staged = openDatabase(":memory:", accountsMigrations);
    let shared: Sqlite | null = null;
    try {
      const copied = yield* fromServer(sql, { state, accounts: staged });
      finish(checkFiles(sqliteQueries(state), copied));
      shared = openDatabase(accountsFile, accountsMigrations);
      const accounts = shared;
      accounts
        .transaction(() => finish(joinAccounts(staged, sqliteQueries(accounts), renamed, null)))
        .immediate();
      // From here on everything is in the file itself.
      state.pragma("journal_mode = DELETE");
      state.close();
      renameSync(part, file);
      syncNames(dirname(file));
    } catch (error) {
      if (error instanceof UsedOnBothSides)
        throw refused(
          `${accountsFile} and ${address.shown} have both been used with the same account since: ${error.message}`,
          "Set XDG_STATE_HOME to an empty folder, for this command and from then on for this workspace.",
        );
      throw error;
    } finally {
      state.close();
      staged.close();
      shared?.close();
      remove(part);
    }
  }
}

function remove(file: string): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(`${file}${end}`, { force: true });
}

async function locked(address: DatabaseAddress, clock: Clock): Promise<LockedPostgres> {
  const { lockPostgres } = await import("../../store/postgres/connect.js");
  const holder = { pid: process.pid, host: hostname(), run: null };
  const server = await lockPostgres({ address, clock, evenIfMoved: true, writes: "both" }, holder);
  if (server !== null) return server;
  throw new EarlyExit(
    "locked",
    `a run is using ${address.shown}. Nothing was changed. Wait for it to end; \`bulkgen status\` shows its progress.`,
  );
}

/** The files of a state, as the mark in the database names them. */
function placeOf({ stateFile }: Workspace): string {
  return `${stateFile} on ${hostname()}`;
}

function* unmark(sql: Queries): Script<void> {
  yield* sql("DELETE FROM moved").run();
}

function* submitting(sql: Queries): Script<number> {
  return Number(yield* sql("SELECT count(*) FROM items WHERE state = 'submitting'").value());
}

function refuseSubmitting(items: number): void {
  if (items === 0) return;
  throw refused(
    `${count(items, "item is", "items are")} being submitted: a run ended in the middle of a paid request`,
    "Run `bulkgen resume` first, which finds out whether it was charged.",
  );
}

function* amounts(sql: Queries): Script<Migrated> {
  const rows = function* (table: string) {
    return Number(yield* sql(`SELECT count(*) FROM ${table}`).value());
  };
  return {
    items: yield* rows("items"),
    attempts: yield* rows("attempts"),
    spendLog: yield* rows("spend_log"),
  };
}

/** A name that no file has. */
function freePath(stem: string): string {
  let path = stem;
  for (let number = 2; existsSync(path); number++) path = `${stem}-${number}`;
  return path;
}

function refused(why: string, todo: string): EarlyExit {
  return new EarlyExit("usage", `${why}. Nothing was changed. ${todo}`);
}
