import { existsSync } from "node:fs";
import type { Clock } from "../../clock.js";
import type { Verdict } from "../../core/charges/readings.js";
import type { Accounts } from "../../core/ports/accounts.js";
import { openAccounts } from "../../store/accounts/accounts.js";
import type { Workspace } from "./workspace.js";

/** What the account's books say of paid requests without an answer. */
export interface BookVerdicts {
  /** `undecided` where the books do not say: whatever may have been charged counts as if it were. */
  on(bookEntry: number | null): Promise<Verdict>;
  close(): void;
}

/** Opens the spend logs that exist; creates none. An unreadable log is treated as empty. */
export function openVerdicts(
  { accountsFile, stateFile }: Pick<Workspace, "accountsFile" | "stateFile">,
  clock: Clock,
): BookVerdicts {
  const accounts = readable(accountsFile, clock);
  const books = accounts?.books({ origin: "", fingerprint: "", workspace: stateFile });
  return {
    async on(bookEntry) {
      const entry = bookEntry === null ? null : await books?.entry(bookEntry);
      return entry?.verdict ?? "undecided";
    },
    close: () => accounts?.close(),
  };
}

function readable(accountsFile: string, clock: Clock): Accounts | null {
  if (!existsSync(accountsFile)) return null;
  try {
    return openAccounts(accountsFile, clock);
  } catch {
    // What is wrong with them is told by whoever needs them, and a history comes back without.
    return null;
  }
}
