import { type OpenAccount, openAccount } from "../../job/workspace/account.js";
import { forLooking } from "../../job/workspace/workspace.js";
import { systemClock } from "../../system.js";
import type { SharedFlags } from "../flags/shared.js";
import { workspaceOf } from "../output/job-options.js";
import { openLog } from "../output/log.js";
import { interruption } from "../output/signals.js";
import { connect } from "./connect.js";

/** Opens the account for a command that only reads, and closes it after. */
export async function withAccount<Result>(
  flags: SharedFlags,
  use: (account: OpenAccount) => Promise<Result>,
): Promise<Result> {
  const workspace = forLooking(workspaceOf(flags), flags.sandbox ?? false);
  const log = await openLog(flags.logLevel);
  const { connection, close } = await connect(flags, workspace);
  try {
    const { accountsFile, stateFile } = workspace;
    const account = await openAccount({
      connection,
      accountsFile,
      stateFile,
      clock: systemClock,
      log,
      signal: interruption(),
      onDailyLimit: "stop",
    });
    try {
      return await use(account);
    } finally {
      await account.close();
    }
  } finally {
    await close();
  }
}
