import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import type { ModelSettings, ProviderSettings } from "../../providers/provider.js";
import { ServedKeys } from "../../serve/keys.js";
import { Journal } from "../../serve/works/journal.js";
import { signingSecret } from "../../service/state/default-account.js";
import { SqliteState } from "../../service/state/sqlite-state.js";
import { count } from "../../text/amounts.js";
import { leavesReally } from "../../text/inside.js";
import { terminalText } from "../../text/terminal.js";
import { agree, type FolderValue, notAgreed } from "../../trust/trust.js";

/**
 * The state of a service may have come with the folder. Its open jobs say which programs are started and where keys are sent, and
 * whoever has one of its keys spends at the providers of this user. So a state that this user has not made on this machine needs
 * their agreement before anything is done with it.
 */

/** What a state is, as a value to agree to; empty if there is none. */
export function stateValues(folder: string, { random }: Pick<Machine, "random">): FolderValue[] {
  if (!existsSync(stateFile(folder))) return [];
  return withState(folder, (state) => {
    const names = new ServedKeys(state, random)
      .list()
      .filter(({ revokedAt }) => revokedAt === null)
      .map(({ name }) => JSON.stringify(name));
    const jobs = new Journal(state).open().length;
    const has = `with ${count(names.length, "key")}${names.length === 0 ? "" : ` (${names.join(", ")})`} and ${count(jobs, "unfinished job")}`;
    return [{ ...identityOf(state, random), from: `${stateFile(folder)}, ${has}` }];
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
 * Records that a state was made here, or has been agreed to. It gets another name then, so that no copy that somebody else has of it
 * counts as agreed to.
 */
export function agreeToState(
  folder: string,
  { random, clock }: Pick<Machine, "random" | "clock">,
  sharedFolder: string,
): void {
  withState(folder, (state) => {
    const known = { ...identityOf(state, random), from: "" };
    if (state.setting(idName) !== undefined && notAgreed(sharedFolder, folder, [known]).length === 0) return;
    state.transact(() => state.saveSetting(idName, random.uuid()));
    agree(sharedFolder, folder, [identityOf(state, random)], clock.now());
  });
}

export function stateFile(folder: string): string {
  return join(folder, "state.db");
}

/** Throws EarlyExit for a file that is damaged, or that this program never made. */
export function openState(folder: string): SqliteState {
  try {
    return new SqliteState(stateFile(folder), { durable: true });
  } catch (error) {
    const why = (error as Error).message;
    throw new EarlyExit(
      "usage",
      `${terminalText(stateFile(folder))} cannot be used as the state of a service: ${terminalText(why)}. Nothing was sent. Restore it from a backup, or move ${terminalText(folder)} away to begin with a new one, which knows no job of the old one.`,
    );
  }
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

function identityOf(state: SqliteState, random: Machine["random"]) {
  const secret = state.transact(() => signingSecret(state, random));
  const known = state.setting(idName) ?? secret;
  return { setting: "service state", value: createHash("sha256").update(known).digest("hex").slice(0, 12) };
}

function withState<Result>(folder: string, use: (state: SqliteState) => Result): Result {
  const state = openState(folder);
  try {
    return use(state);
  } finally {
    state.close();
  }
}
