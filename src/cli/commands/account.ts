import { accountText } from "../../report/account.js";
import { terminalStyle } from "../../text/table.js";
import type { SharedFlags } from "../flags/shared.js";
import { openLog } from "../output/log.js";
import { withAccount } from "../settings/connect.js";
import type { Call } from "./call.js";

export async function account({ flags, machine }: Call<SharedFlags>): Promise<undefined> {
  const { stdout, env } = machine;
  const log = await openLog(flags.logLevel, machine);
  const facts = await withAccount({ flags, machine, log }, async (open) => ({
    me: (await open.identify()).me,
    quota: await open.accounts.quota(open.accountId()),
  }));
  const { me, ...rest } = facts;
  stdout.write(
    flags.json
      ? `${JSON.stringify({ ...me, ...rest })}\n`
      : `${accountText(facts, terminalStyle(stdout, env))}\n`,
  );
}
