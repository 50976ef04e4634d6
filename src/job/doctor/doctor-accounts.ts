import { existsSync } from "node:fs";
import type { Clock } from "../../clock.js";
import { type Check, fine, problem } from "../../report/doctor.js";
import { openAccounts } from "../../store/accounts/accounts.js";
import { wayOut } from "../../store/way-out.js";

/** Whether what accounts share, in a database beside no workspace, can be read and written. */
export function accountsData(accountsFile: string, clock: Clock): Check {
  const expected = "a request ledger and books that can be read, or none yet";
  if (!existsSync(accountsFile)) return fine("accounts", expected, "none yet");
  try {
    openAccounts(accountsFile, clock).close();
    return fine("accounts", expected, accountsFile);
  } catch (error) {
    const todo = wayOut(error);
    if (todo === null) throw error;
    return problem("accounts", { expected, got: (error as Error).message, todo });
  }
}
