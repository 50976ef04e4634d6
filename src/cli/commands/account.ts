import { resolve } from "node:path";
import type { ModelList } from "../../api/records.js";
import { EarlyExit } from "../../core/exit.js";
import { accountJson, accountText, modelsTable } from "../../report/account.js";
import { localTime } from "../../text/times.js";
import { writeWhole } from "../../whole-file.js";
import type { AccountFlags, ModelsFlags } from "../flags/setup.js";
import { openLog } from "../output/log.js";
import { print } from "../output/print.js";
import { withAccount } from "../settings/connect.js";
import { namingFile } from "../settings/file-trouble.js";
import type { Call } from "./call.js";

export async function account({ flags, machine }: Call<AccountFlags>): Promise<undefined> {
  const log = await openLog(flags, machine);
  const facts = await withAccount({ flags, machine, log }, async (open) => {
    if (flags.forgetPause) {
      const until = await open.accounts.forgetPause(open.accountId());
      const what =
        until === null ? "there is no pause to forget" : `forgot the pause until ${localTime(until)}`;
      machine.stderr.write(`bulkgen: ${what}\n`);
    }
    return { me: (await open.identify()).me, quota: await open.accounts.quota(open.accountId()) };
  });
  print(flags, machine, "account", accountJson(facts), (style) => accountText(facts, style));
}

export async function models({
  flags,
  args: { category },
  machine,
}: Call<ModelsFlags, { category?: string }>): Promise<undefined> {
  const { stderr, cwd } = machine;
  const log = await openLog(flags, machine);
  const all = await withAccount({ flags, machine, log }, (open) => open.models());
  const list = category === undefined ? all : ofCategory(all, category);
  if (flags.save !== undefined) {
    const file = resolve(cwd, flags.save);
    await namingFile(file, () => writeWhole(file, `${JSON.stringify(list, null, 2)}\n`));
    stderr.write(`saved ${list.models.length} models to ${flags.save}\n`);
    if (!flags.json) return;
  }
  print(flags, machine, "models", list, (style) => modelsTable(list.models, style));
}

/** Throws EarlyExit for a category that no model has. */
function ofCategory(all: ModelList, category: string): ModelList {
  const models = all.models.filter((model) => model.category === category);
  const known = [...new Set(all.models.map((model) => model.category))];
  if (models.length > 0)
    return {
      ...all,
      models,
      categories: { [category]: models.map((model) => model.model_key) },
      total: models.length,
    };
  throw new EarlyExit("usage", `expected a category of the service (${known.join(", ")}), got ${category}`);
}
