import { type Command, InvalidArgumentError } from "commander";
import { type Plan, plans } from "../api/plans.js";
import { EarlyExit } from "../core/exit.js";
import type { SandboxModel } from "../sandbox/catalogue.js";
import { fromMicro } from "../sandbox/credits.js";
import type { RunningSandbox } from "../sandbox/serve.js";
import { defineSandboxAccount } from "./sandbox-account.js";
import { defineSandboxKeys } from "./sandbox-keys.js";
import { administer, memory, type StateFlags, stateFile, withState } from "./sandbox-state.js";
import { interruption } from "./signals.js";
import { amount, oneOf, wholeNumber } from "./values.js";

interface Flags extends StateFlags {
  port: number;
  plan?: Plan;
  credits?: number;
  models?: string;
  taskMs?: { min: number; max: number };
  json?: boolean;
}

export function defineSandbox(program: Command): void {
  const sandbox = withState(program.command("sandbox"))
    .description("serve the whole service on this machine")
    // What stands before a subcommand is the sandbox's own, what stands after it is the subcommand's.
    .enablePositionalOptions()
    .helpCommand(false)
    .option("--port <n>", "port on 127.0.0.1 (default: any free one)", wholeNumber, 0)
    .option(
      "--plan <plan>",
      `plan of its account: ${plans.join(", ")} (default: as it is; Pro at first)`,
      oneOf(...plans),
    )
    .option("--credits <n>", "credits of its account (default: as they are; 500 at first)", amount)
    .option("--models <file>", "play the models in a file that bulkgen models --save wrote")
    .option("--task-ms <min-max>", "how long tasks take, in ms", range)
    .option("--json", "print {url, key, dashboard} on one line when it listens")
    .addHelpText("after", `\n--state ${memory} keeps nothing: each start is a fresh one.`)
    .action(serve);
  defineSandboxKeys(sandbox);
  defineSandboxAccount(sandbox);
}

async function serve(flags: Flags): Promise<void> {
  const [{ serveSandbox }, { systemClock, systemRandom }] = await Promise.all([
    import("../sandbox/serve.js"),
    import("../system.js"),
  ]);
  const models = flags.models === undefined ? {} : { models: await savedModels(flags.models) };
  const file = stateFile(flags);
  const standing = file === memory ? standingInMemory(flags) : await standingIn(file, flags);
  const sandbox = await serveSandbox({
    clock: systemClock,
    random: systemRandom,
    file,
    port: flags.port,
    ...standing,
    ...models,
    inputRoot: process.cwd(),
    ...(flags.taskMs ? { taskMs: flags.taskMs } : {}),
  });
  announce(sandbox, standing, flags);
  await new Promise<void>((resolve) =>
    interruption().addEventListener("abort", () => resolve(), { once: true }),
  );
  await sandbox.close();
}

async function savedModels(file: string): Promise<SandboxModel[]> {
  const [{ readFile }, { ModelFileProblem, readModelFile }] = await Promise.all([
    import("node:fs/promises"),
    import("../sandbox/model-file.js"),
  ]);
  try {
    return readModelFile(await readFile(file, "utf8"), file);
  } catch (error) {
    if (error instanceof ModelFileProblem) throw new EarlyExit("usage", error.message);
    throw error;
  }
}

interface Standing {
  plan: Plan;
  credits: number;
}

function standingInMemory({ plan = "Pro", credits = 500 }: Flags): Standing {
  return { plan, credits };
}

/** How the account stands in a state file, after what the flags say about it was changed and nothing else. */
async function standingIn(file: string, { plan, credits }: Flags): Promise<Standing> {
  const { changeAccount, findAccount } = await import("../sandbox/admin/accounts.js");
  const change = { ...(plan === undefined ? {} : { plan }), ...(credits === undefined ? {} : { credits }) };
  const account = await administer({ state: file }, true, (desk) =>
    changeAccount(desk, findAccount(desk, undefined).id, change),
  );
  return { plan: account.plan, credits: fromMicro(account.balanceMicro) };
}

function announce({ url, key, dashboard }: RunningSandbox, { plan, credits }: Standing, flags: Flags): void {
  if (flags.json) {
    process.stdout.write(`${JSON.stringify({ url, key, dashboard })}\n`);
    return;
  }
  process.stdout.write(
    `sandbox listens on ${url} (plan ${plan}, ${credits} credits); Ctrl-C ends it\n` +
      `  dashboard: ${dashboard}\n` +
      `  export BULKGEN_BASE_URL=${url}\n  export BULKGEN_API_KEY=${key}\n`,
  );
}

function range(text: string): { min: number; max: number } {
  const match = /^(\d+)(?:-(\d+))?$/.exec(text);
  const min = Number(match?.[1]);
  const max = Number(match?.[2] ?? match?.[1]);
  if (!match || min > max)
    throw new InvalidArgumentError(`expected such as 500-1800, got ${JSON.stringify(text)}`);
  return { min, max };
}
