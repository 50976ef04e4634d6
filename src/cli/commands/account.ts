import { resolve } from "node:path";
import type { ModelList } from "../../api/records.js";
import { EarlyExit } from "../../core/exit.js";
import type { AccountFlags, ModelsFlags } from "../../options/setup.js";
import { accountJson, accountText, modelsTable } from "../../report/account.js";
import { count } from "../../text/amounts.js";
import { localTime } from "../../text/times.js";
import { refuseKeptIn } from "../../upkeep/archive/kept-files.js";
import { writeWhole } from "../../whole-file.js";
import type { OpenAccount } from "../../workspace/account.js";
import { checkedAddress } from "../../workspace/connection.js";
import { openLog } from "../output/log.js";
import { print } from "../output/print.js";
import { withAccount } from "../settings/connect.js";
import { namingFile } from "../settings/file-trouble.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function account({ flags, machine }: Call<AccountFlags>): Promise<undefined> {
  const log = await openLog(flags, machine);
  if (flags.sameService !== undefined)
    await withAccount({ flags, machine, log }, async (open) => {
      machine.stderr.write(`${await joinedServices(open, flags.sameService ?? "")}\n`);
    });
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

/** Says that the service has moved from an address of before, and what came of it. Throws EarlyExit. */
async function joinedServices({ accounts, baseUrl, identify }: OpenAccount, before: string): Promise<string> {
  const { origin: named } = checkedAddress(before);
  const origin = await accounts.serviceAt(named);
  const address = checkedAddress(baseUrl).origin;
  if (origin === address)
    throw new EarlyExit(
      "usage",
      `--same-service: expected the address of before, got the present one, ${address}. Nothing was changed.`,
    );
  const user = (await identify()).me.user.id;
  const paid = await accounts.sameService({ address, origin, user });
  if (paid === null)
    throw new EarlyExit(
      "usage",
      `--same-service: expected an address at which user ${user} has used bulkgen on this machine, got ${origin}. Nothing was changed.`,
    );
  const others =
    paid === 0
      ? ""
      : `; ${count(paid, "request was", "requests were")} paid for at ${address} as at another service, and those items do not count`;
  return `the service at ${address} is the one of ${origin} from now on: its runs continue here, and what was made there is made${others}`;
}

export async function models({
  flags,
  args: { category },
  machine,
}: Call<ModelsFlags, { category?: string }>): Promise<undefined> {
  const { stderr, cwd, clock } = machine;
  const file = flags.save === undefined ? null : resolve(cwd, flags.save);
  if (file !== null)
    await refuseKeptIn(
      { file: flags.save ?? file, path: file, workspace: workspaceOf(flags, machine) },
      clock,
    );
  const log = await openLog(flags, machine);
  const all = await withAccount({ flags, machine, log }, (open) => open.models());
  const list = category === undefined ? all : ofCategory(all, category);
  if (file !== null) {
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
