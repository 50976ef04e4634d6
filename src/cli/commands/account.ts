import type { Command } from "commander";
import { terminalStyle } from "../../text/table.js";
import { type SharedFlags, withService } from "../flags/shared.js";

export function defineAccount(program: Command): void {
  withService(program.command("account"))
    .description("show the account: user, credits, subscription, key, limits")
    .action(account);
}

async function account(flags: SharedFlags): Promise<void> {
  const [{ withAccount }, { accountText }] = await Promise.all([
    import("../settings/connect.js"),
    import("../../report/account.js"),
  ]);
  const facts = await withAccount(flags, async (open) => ({
    me: (await open.identify()).me,
    quota: await open.accounts.quota(open.accountId()),
  }));
  const { me, ...rest } = facts;
  process.stdout.write(
    flags.json
      ? `${JSON.stringify({ ...me, ...rest })}\n`
      : `${accountText(facts, terminalStyle(process.stdout, process.env))}\n`,
  );
}
