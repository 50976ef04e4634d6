import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { type Credits, inCredits } from "../../../core/money.js";
import type { Machine } from "../../../machine.js";
import type { InitFlags } from "../../../options/setup.js";
import { accountText } from "../../../report/account.js";
import { agree } from "../../../trust/trust.js";
import { openAccount } from "../../../workspace/account.js";
import { checkedAddress, checkedKey } from "../../../workspace/connection.js";
import { firstJob, firstJobOf, makeStarter, sandboxJob, serviceEnvText } from "../../../workspace/starter.js";
import { openLog } from "../../output/log.js";
import { envFile, keyFromFile } from "../../settings/env.js";
import { namingFile } from "../../settings/file-trouble.js";
import { workspaceOf } from "../../settings/workspace.js";
import type { Call } from "../call.js";
import { initOwnModels } from "./own-models.js";
import { askService, type ServiceAnswers } from "./questions.js";
import { made, stepsText } from "./report.js";

export async function init({
  flags,
  args,
  machine,
}: Call<InitFlags, { folder?: string }>): Promise<undefined> {
  const { stdin, stdout, stderr, cwd } = machine;
  const folder = resolve(cwd, args.folder ?? ".");
  if (flags.provider !== undefined) return initOwnModels(flags.provider, folder, flags, machine);
  const hasSettings = existsSync(envFile(folder));
  const given = givenBy(flags, machine);
  const asks = !flags.sandbox && !hasSettings && stdin.isTTY && stderr.isTTY;
  const answers = asks
    ? await askService(given, { input: stdin, output: stderr, signal: machine.interrupt() })
    : given;
  if ("provider" in answers) return initOwnModels(answers.provider, folder, flags, machine);
  const found = await accountOf(answers, folder, machine);
  const started = await namingFile(folder, () =>
    makeStarter({
      folder,
      settings: serviceEnvText(answers),
      files: { [firstJob]: found?.job?.text ?? sandboxJob },
    }),
  );
  if (answers.baseUrl !== null && started.made.includes(".env"))
    agree(
      workspaceOf({ workspace: folder }, machine).sharedFolder,
      folder,
      [{ setting: "base-url", value: answers.baseUrl }],
      machine.clock.now(),
    );
  const lost = hasSettings && (given.baseUrl !== null || given.key !== null);
  const steps = next(relative(cwd, folder), {
    // An earlier call may have made it.
    isSandboxJob: readFileSync(join(folder, firstJob), "utf8") === sandboxJob,
    isConnected: found !== null,
    price: found?.job?.price ?? null,
  });
  const account = found === null ? [] : [found.account, ""];
  const note = "note   address and key were not written because .env existed: write them there yourself";
  const lines = [...account, ...made(started), ...(lost ? [note] : []), "", ...steps];
  stdout.write(`${lines.join("\n")}\n`);
}

/**
 * Tries address and key before anything is made: the account, and a first job of its models. Null if one of them is
 * missing. Throws EarlyExit if they do not work.
 */
async function accountOf(
  { baseUrl, key }: ServiceAnswers,
  folder: string,
  machine: Machine,
): Promise<{ account: string; job: ReturnType<typeof firstJobOf> } | null> {
  if (baseUrl === null || key === null) return null;
  const place = workspaceOf({ workspace: folder }, machine);
  const open = await openAccount({
    // The user has just named both.
    connection: { origin: baseUrl, baseUrl, key, sandbox: false, trustAddress: true },
    place,
    clock: machine.clock,
    log: await openLog({ logLevel: "warn", logFormat: "text" }, machine),
    signal: machine.interrupt(),
    onDailyLimit: "stop",
  });
  try {
    const { me } = await open.identify();
    const { models } = await open.models();
    const quota = await open.accounts.quota(open.accountId());
    return { account: accountText({ me, quota }), job: firstJobOf(models) };
  } finally {
    await open.close();
  }
}

/** Address and key of the flags. Throws EarlyExit. */
function givenBy(flags: InitFlags, { cwd }: Machine): ServiceAnswers {
  return {
    baseUrl: flags.baseUrl === undefined ? null : checkedAddress(flags.baseUrl).baseUrl,
    key: flags.apiKeyFile === undefined ? null : checkedKey(keyFromFile(flags.apiKeyFile, cwd)),
  };
}

interface Made {
  /** The first job is one of the sandbox. */
  isSandboxJob: boolean;
  /** Address and key were given, and work. */
  isConnected: boolean;
  /** Of the first job; null if unknown. */
  price: Credits | null;
}

/** What to type next; `way` leads from here to the folder. */
function next(way: string, { isSandboxJob, isConnected, price }: Made): string[] {
  const cost = price === null ? "" : `, for about ${inCredits(price)}`;
  const steps: [string, string][] = [
    ...(isSandboxJob
      ? [[`bulkgen run ${firstJob} --sandbox`, "a rehearsal: no key, no cost"] as [string, string]]
      : [
          [`bulkgen plan ${firstJob}`, "check the sheet and its price"] as [string, string],
          [`bulkgen run ${firstJob}`, `make it${cost}`] as [string, string],
        ]),
    ...(isSandboxJob && !isConnected
      ? [["bulkgen models --sandbox", "names for the model column"] as [string, string]]
      : [
          ["bulkgen doctor", "check that address and key work"] as [string, string],
          ["bulkgen models", "names for the model column"] as [string, string],
        ]),
  ];
  return stepsText(way, steps);
}
