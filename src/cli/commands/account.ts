import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { accountText, modelsTable } from "../../report/account.js";
import type { ModelsFlags } from "../flags/setup.js";
import type { SharedFlags } from "../flags/shared.js";
import { openLog } from "../output/log.js";
import { print } from "../output/print.js";
import { withAccount } from "../settings/connect.js";
import type { Call } from "./call.js";

export async function account({ flags, machine }: Call<SharedFlags>): Promise<undefined> {
  const log = await openLog(flags.logLevel, machine);
  const facts = await withAccount({ flags, machine, log }, async (open) => ({
    me: (await open.identify()).me,
    quota: await open.accounts.quota(open.accountId()),
  }));
  const { me, ...rest } = facts;
  print(flags, machine, { ...me, ...rest }, (look) => accountText(facts, look));
}

export async function models({ flags, machine }: Call<ModelsFlags>): Promise<undefined> {
  const { stderr, cwd } = machine;
  const log = await openLog(flags.logLevel, machine);
  const list = await withAccount({ flags, machine, log }, (open) => open.models());
  if (flags.save !== undefined) {
    await writeFile(resolve(cwd, flags.save), `${JSON.stringify(list, null, 2)}\n`);
    stderr.write(`saved ${list.models.length} models to ${flags.save}\n`);
    if (!flags.json) return;
  }
  print(flags, machine, list, (look) => modelsTable(list.models, look));
}
