import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { isCancel, password, select, text } from "@clack/prompts";
import { isKeyForm } from "../../api/key.js";
import { EarlyExit } from "../../core/exit.js";
import { type Credits, inCredits } from "../../core/money.js";
import type { Machine } from "../../machine.js";
import type { InitFlags } from "../../options/setup.js";
import { accountText } from "../../report/account.js";
import { shellWord } from "../../text/shell.js";
import { agree } from "../../trust/trust.js";
import { openAccount } from "../../workspace/account.js";
import { checkedAddress, checkedKey, shapeOf } from "../../workspace/connection.js";
import { firstJob, firstJobOf, makeStarter, type Started, sandboxJob } from "../../workspace/starter.js";
import { openLog } from "../output/log.js";
import { envFile, keyFromFile } from "../settings/env.js";
import { namingFile } from "../settings/file-trouble.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function init({
  flags,
  args,
  machine,
}: Call<InitFlags, { folder?: string }>): Promise<undefined> {
  const { stdin, stdout, stderr, cwd } = machine;
  const folder = resolve(cwd, args.folder ?? ".");
  const hasSettings = existsSync(envFile(folder));
  const given = givenBy(flags, machine);
  const asks = !flags.sandbox && !hasSettings && stdin.isTTY && stderr.isTTY;
  const answers = asks
    ? await askService(given, { input: stdin, output: stderr, signal: machine.interrupt() })
    : given;
  const found = await accountOf(answers, folder, machine);
  const started = await namingFile(folder, () =>
    makeStarter({ folder, ...answers, job: found?.job?.text ?? sandboxJob }),
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
  stdout.write(`${[...account, ...report(started, lost), "", ...steps].join("\n")}\n`);
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

function report({ made, kept, ignored }: Started, lost: boolean): string[] {
  return [
    ...made.map((name) => `made   ${name}${name === ".env" ? " (only you can read it)" : ""}`),
    ...kept.map((name) => `kept   ${name} (it existed)`),
    ...(ignored.length === 0 ? [] : [`added  ${ignored.join(" ")} to .gitignore`]),
    ...(lost
      ? ["note   address and key were not written because .env existed: write them there yourself"]
      : []),
  ];
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
    ...(way === "" ? [] : [[`cd ${quoted(way)}`, ""] as [string, string]]),
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
  const width = Math.max(...steps.map(([command]) => command.length));
  return ["next:", ...steps.map(([command, why]) => `  ${command.padEnd(width)}  ${why}`.trimEnd())];
}

/** A folder as it can be pasted after `cd`, which would take a dash for an option. */
function quoted(name: string): string {
  return shellWord(name.startsWith("-") ? `./${name}` : name);
}

export interface Terminal {
  input: Readable;
  output: Writable;
  /** Ends the question as Ctrl-C does. */
  signal: AbortSignal;
}

export interface ServiceAnswers {
  baseUrl: string | null;
  key: string | null;
}

/** Asks which service the workspace is for, except for what flags gave. Throws EarlyExit when it is interrupted. */
async function askService(given: ServiceAnswers, terminal: Terminal): Promise<ServiceAnswers> {
  if (given.baseUrl === null && given.key === null) {
    const which = answered(
      await select({
        ...terminal,
        message: "Which service is this workspace for?",
        options: [
          { value: "sandbox", label: "The sandbox on this machine", hint: "no key, no cost" },
          { value: "service", label: "The service", hint: "needs its address and an API key" },
        ],
      }),
    );
    if (which === "sandbox") return given;
  }
  return {
    baseUrl: given.baseUrl ?? (await askBaseUrl(terminal)),
    key: given.key ?? (await askKey(terminal)),
  };
}

async function askBaseUrl(terminal: Terminal): Promise<string> {
  const entered = answered(
    await text({
      ...terminal,
      message: "The service's address",
      placeholder: "https://service.example",
      validate: (value) => objection(value ?? ""),
    }),
  );
  return checkedAddress(entered.trim()).baseUrl;
}

async function askKey(terminal: Terminal): Promise<string | null> {
  const entered = answered(
    await password({
      ...terminal,
      message: "The API key (hidden; press Enter to add it later)",
      validate: (value) => {
        const key = (value ?? "").trim();
        if (key === "" || isKeyForm(key)) return undefined;
        return `expected svc_ and 32 letters or digits, got ${shapeOf(key)}`;
      },
    }),
  );
  return entered?.trim() || null;
}

function objection(value: string): string | undefined {
  try {
    checkedAddress(value.trim());
    return undefined;
  } catch (error) {
    if (error instanceof EarlyExit) return error.message;
    throw error;
  }
}

function answered<Answer>(answer: Answer): Exclude<Answer, symbol> {
  if (isCancel(answer)) throw new EarlyExit("interrupted", "interrupted. Nothing was created.");
  return answer as Exclude<Answer, symbol>;
}
