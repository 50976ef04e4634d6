import { createHash } from "node:crypto";
import { existsSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import type { ModelSettings, ProviderSettings } from "../../providers/provider.js";
import { ServedKeys } from "../../serve/keys.js";
import { Journal } from "../../serve/works/journal.js";
import { signingSecret } from "../../service/state/default-account.js";
import { SqliteState } from "../../service/state/sqlite-state.js";
import { makeOwnFile } from "../../store/open.js";
import { count } from "../../text/amounts.js";
import { leavesReally } from "../../text/inside.js";
import { terminalText } from "../../text/terminal.js";
import { agree, agreedFolders, type FolderValue, notAgreed } from "../../trust/trust.js";

/**
 * The state of a service may have come with the folder. Its open jobs say which programs are started and where keys are sent, and
 * whoever has one of its keys spends at the providers of this user. So a state that this user has not made on this machine needs
 * their agreement before anything is done with it.
 */

/** What a state is, as a value to agree to; empty if there is none. */
export function stateValues(folder: string, { random }: Pick<Machine, "random">): FolderValue[] {
  if (!existsSync(stateFile(folder))) return [];
  return withState(folder, (state) => {
    if (isNew(state, random)) return [];
    const names = new ServedKeys(state, random)
      .list()
      .filter(({ revokedAt }) => revokedAt === null)
      .map(({ name }) => JSON.stringify(name));
    const jobs = new Journal(state).open().length;
    const has = `with ${count(names.length, "key")}${names.length === 0 ? "" : ` (${names.join(", ")})`} and ${count(jobs, "unfinished job")}`;
    const name = state.setting(idName) ?? state.transact(() => signingSecret(state, random));
    return [{ ...named(name), from: `${stateFile(folder)}, ${has}` }];
  });
}

/** The unfinished jobs of a state, which do what the models file said when they were taken. */
export function openJobs(folder: string): { settings: ModelSettings; provider: ProviderSettings }[] {
  if (!existsSync(stateFile(folder))) return [];
  return withState(folder, (state) =>
    new Journal(state).open().map(({ model, settings }) => ({ settings: model, provider: settings })),
  );
}

/**
 * Makes a state, or agrees to the one that is there. It gets another name then, so that no copy that somebody else has of it counts
 * as agreed to. The name is agreed to before it is written: a process may be killed anywhere, and the state is new or agreed to.
 */
export function agreeToState(
  folder: string,
  { random, clock, stderr }: Pick<Machine, "random" | "clock" | "stderr">,
  sharedFolder: string,
): void {
  withState(folder, (state) => {
    if (isNew(state, random) && hadState(sharedFolder, folder))
      stderr.write(
        `bulkgen: ${terminalText(stateFile(folder))} is new, and the one that was here before is gone with its keys, budgets and unfinished jobs. If you did not remove it, restore it from a backup.\n`,
      );
    const known = state.setting(idName);
    if (known !== undefined && notAgreed(sharedFolder, folder, [{ ...named(known), from: "" }]).length === 0)
      return;
    const name = random.uuid();
    agree(sharedFolder, folder, [named(name)], clock.now());
    state.transact(() => state.saveSetting(idName, name));
  });
}

export function stateFile(folder: string): string {
  return join(folder, "state.db");
}

/** Throws EarlyExit for a file that is damaged, or that this program never made. */
export function openState(folder: string): SqliteState {
  try {
    makeOwnFile(stateFile(folder));
    return new SqliteState(stateFile(folder), { durable: true });
  } catch (error) {
    throw unusable(folder, error);
  }
}

/** A full disk or a lock is nothing that the file has to be replaced for. */
function unusable(folder: string, error: unknown): unknown {
  const { code, message } = error as { code?: string; message: string };
  const file = stateFile(folder);
  const isFolder = statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;
  if (!isFolder && !/^SQLITE_(ERROR|NOTADB|CORRUPT)/.test(String(code))) return error;
  const why = isFolder ? "it is a folder; expected a file" : message.replace(`${file}: `, "");
  return new EarlyExit(
    "usage",
    `${terminalText(file)} cannot be used as the state of a service: ${terminalText(why)}. Nothing was sent. Restore it from a backup, or move ${terminalText(folder)} away to begin with a new one, which knows no job of the old one.`,
  );
}

/** Throws EarlyExit for a folder that is a link to elsewhere: a stranger's could lead to another service of this user. */
export function refuseLinkedState(root: string, folder: string): void {
  if (!existsSync(root) || !leavesReally(root, stateFile(folder))) return;
  throw new EarlyExit(
    "usage",
    `${terminalText(stateFile(folder))} is reached by a link out of ${terminalText(root)}, and a folder from somebody else could name another service of yours that way. Nothing was sent. Remove the link; \`bulkgen serve --state FOLDER\` keeps the state elsewhere.`,
  );
}

const idName = "state id";

const stateSetting = "service state";

/** Whether a state of this folder was made or agreed to on this machine before. */
function hadState(sharedFolder: string, folder: string): boolean {
  const real = realpathSync(folder);
  return agreedFolders(sharedFolder).some(
    (known) => known.folder === real && known.agreements.some(({ setting }) => setting === stateSetting),
  );
}

function named(name: string) {
  return { setting: stateSetting, value: createHash("sha256").update(name).digest("hex").slice(0, 12) };
}

/** Whether a state has nothing in it but tables that this program makes: nobody has used it yet, here or elsewhere. */
function isNew(state: SqliteState, random: Machine["random"]): boolean {
  const fresh = new SqliteState(":memory:");
  try {
    new Journal(fresh);
    new ServedKeys(fresh, random);
    const ours = new Set(madeIn(fresh).map(({ sql }) => sql));
    return madeIn(state).every(
      ({ type, name, sql }) =>
        ours.has(sql) &&
        (type !== "table" || state.db.prepare(`select 1 from ${name} limit 1`).get() === undefined),
    );
  } finally {
    fresh.close();
  }
}

/** The tables and indexes of a state. */
function madeIn({ db }: SqliteState): { type: string; name: string; sql: string }[] {
  return db.prepare("select type, name, sql from sqlite_schema where sql is not null").all() as ReturnType<
    typeof madeIn
  >;
}

function withState<Result>(folder: string, use: (state: SqliteState) => Result): Result {
  const state = openState(folder);
  try {
    return use(state);
  } catch (error) {
    throw unusable(folder, error);
  } finally {
    state.close();
  }
}
