import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import { ServedKeys } from "../../serve/keys.js";
import { Journal } from "../../serve/works/journal.js";
import { signingSecret } from "../../service/state/default-account.js";
import { SqliteState } from "../../service/state/sqlite-state.js";
import { count } from "../../text/amounts.js";
import { leavesReally } from "../../text/inside.js";
import { terminalText } from "../../text/terminal.js";
import { agree, type FolderValue } from "../../trust/trust.js";

/**
 * The state of a service may have come with the folder. Its open jobs say which programs are started and where keys are sent, and
 * whoever has one of its keys spends at the providers of this user. So a state that this user has not made on this machine needs
 * their agreement before its jobs go on, or its keys are good.
 */

/** What its jobs, and with `keys` its keys, are to be agreed to for; empty if it has none, or there is no state. */
export function stateValues(
  folder: string,
  { random }: Pick<Machine, "random">,
  { keys: withKeys }: { keys: boolean },
): FolderValue[] {
  const file = stateFile(folder);
  if (!existsSync(file)) return [];
  const state = new SqliteState(file, { durable: true });
  try {
    const names = new ServedKeys(state, random)
      .list()
      .filter(({ revokedAt }) => withKeys && revokedAt === null)
      .map(({ name }) => name);
    const jobs = new Journal(state).open().length;
    if (names.length === 0 && jobs === 0) return [];
    const parts = [
      ...(names.length === 0 ? [] : [`${names.length === 1 ? "the key" : "the keys"} ${names.join(", ")}`]),
      ...(jobs === 0 ? [] : [count(jobs, "unfinished job")]),
    ];
    return [{ ...identityOf(state, { random }), from: `${file}: ${parts.join(" and ")}` }];
  } finally {
    state.close();
  }
}

/** Records that a state was made here, or has been agreed to. */
export function agreeToState(
  folder: string,
  { random, clock }: Pick<Machine, "random" | "clock">,
  sharedFolder: string,
): void {
  const state = new SqliteState(stateFile(folder), { durable: true });
  try {
    agree(sharedFolder, folder, [identityOf(state, { random })], clock.now());
  } finally {
    state.close();
  }
}

export function stateFile(folder: string): string {
  return join(folder, "state.db");
}

/** Throws EarlyExit for a folder that is a link to elsewhere: a stranger's could lead to another service of this user. */
export function refuseLinkedState(root: string, folder: string): void {
  if (!existsSync(root) || !leavesReally(root, stateFile(folder))) return;
  throw new EarlyExit(
    "usage",
    `${terminalText(stateFile(folder))} is reached by a link out of ${terminalText(root)}, and a folder from somebody else could name another service of yours that way. Nothing was sent. Remove the link; \`bulkgen serve --state FOLDER\` keeps the state elsewhere.`,
  );
}

/** Each state has a secret of its own. */
function identityOf(state: SqliteState, { random }: Pick<Machine, "random">) {
  const secret = state.transact(() => signingSecret(state, random));
  const id = createHash("sha256").update(secret).digest("hex").slice(0, 12);
  return { setting: "service state", value: id };
}
