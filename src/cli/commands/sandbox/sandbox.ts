import { type Command, InvalidArgumentError, Option } from "commander";
import { type PlanName, plans } from "../../../api/plans.js";
import { EarlyExit } from "../../../core/exit.js";
import { credits, inCredits } from "../../../core/money.js";
import type { SandboxOptions } from "../../../sandbox/sandbox.js";
import type { RunningSandbox } from "../../../sandbox/serve.js";
import { fromMicro } from "../../../sandbox/state/credits.js";
import { amount, oneOf, wholeNumber } from "../../flags/values.js";
import { interruption } from "../../output/signals.js";
import { defineSandboxAccount } from "./account.js";
import { defineSandboxKeys } from "./keys.js";
import { administer, memory, type StateFlags, stateFile, withState } from "./state.js";

interface Flags extends StateFlags {
  port: number;
  plan?: PlanName;
  credits?: number;
  models?: string;
  switches?: string;
  faults?: string;
  faultSeed?: string;
  taskMs?: { min: number; max: number };
  json?: boolean;
}

export function defineSandbox(program: Command): void {
  const sandbox = withState(program.command("sandbox"))
    .description("serve the whole service on this machine")
    // What stands before a subcommand is the sandbox's own, what stands after it is the subcommand's.
    .enablePositionalOptions()
    .helpCommand(false)
    .addOption(
      new Option("--port <n>", "port on 127.0.0.1").argParser(wholeNumber).default(0, "any free one"),
    )
    .option(
      "--plan <plan>",
      `plan of its account: ${plans.join(", ")} (default: as it is; Pro at first)`,
      oneOf(...plans),
    )
    .option("--credits <n>", "credits of its account (default: as they are; 500 at first)", amount)
    .option("--models <file>", "play the models in a file that bulkgen models --save wrote")
    .option("--switches <file>", "where services differ, do as this file says, such as a saved profile")
    .option("--faults <file|preset>", "let things go wrong as a file or a preset says, such as flaky")
    .option("--fault-seed <text>", "let them go wrong elsewhere")
    .option("--task-ms <min-max>", "how long tasks take, in ms", range)
    .option("--json", "print {url, key, dashboard} on one line when it listens")
    .addHelpText("after", `\n--state ${memory} keeps nothing: each start is a fresh one.`)
    .action(serve);
  defineSandboxKeys(sandbox);
  defineSandboxAccount(sandbox);
}

async function serve(flags: Flags): Promise<void> {
  const [{ serveSandbox }, { systemClock, systemRandom }] = await Promise.all([
    import("../../../sandbox/serve.js"),
    import("../../../system.js"),
  ]);
  const rehearsal = await rehearsed(flags);
  const file = await stateToServe(flags);
  const standing = file === memory ? standingInMemory(flags) : await standingIn(file, flags);
  const sandbox = await serveSandbox({
    clock: systemClock,
    random: systemRandom,
    file,
    port: flags.port,
    ...standing,
    ...rehearsal,
    inputRoot: process.cwd(),
    ...(flags.taskMs ? { taskMs: flags.taskMs } : {}),
  });
  announce(sandbox, standing, flags);
  await new Promise<void>((resolve) =>
    interruption().addEventListener("abort", () => resolve(), { once: true }),
  );
  await sandbox.close();
}

/** Made where there is none, and where a database can be trusted. */
async function stateToServe(flags: Flags): Promise<string> {
  if (flags.state !== undefined) return stateFile(flags);
  const { settledWorkspace } = await import("../../output/session.js");
  const { workspace } = flags;
  const shared = { sandbox: true, logLevel: "warn", ...(workspace === undefined ? {} : { workspace }) };
  return settledWorkspace(shared, undefined, { make: true }).serviceFile;
}

/** What is played, and what goes wrong with it. Throws EarlyExit for a file that cannot be used. */
async function rehearsed({ models, switches, faults, faultSeed }: Flags): Promise<Partial<SandboxOptions>> {
  const [{ readFile }, { readModelFile }, { readSwitches }, { readFaults }] = await Promise.all([
    import("node:fs/promises"),
    import("../../../sandbox/catalogue/model-file.js"),
    import("../../../sandbox/state/switches.js"),
    import("../../../sandbox/faults/presets.js"),
  ]);
  try {
    return {
      ...(models === undefined ? {} : { models: readModelFile(await readFile(models, "utf8"), models) }),
      ...(switches === undefined
        ? {}
        : { switches: readSwitches(await readFile(switches, "utf8"), switches) }),
      ...(faults === undefined ? {} : { faults: await readFaults(faults, faultSeed) }),
    };
  } catch (error) {
    throw new EarlyExit("usage", (error as Error).message);
  }
}

interface Standing {
  plan: PlanName;
  credits: number;
}

function standingInMemory({ plan = "Pro", credits = 500 }: Flags): Standing {
  return { plan, credits };
}

/** How the account stands in a state file, after what the flags say about it was changed and nothing else. */
async function standingIn(file: string, { plan, credits }: Flags): Promise<Standing> {
  const { changeAccount, findAccount } = await import("../../../sandbox/admin/accounts.js");
  const change = { ...(plan === undefined ? {} : { plan }), ...(credits === undefined ? {} : { credits }) };
  const account = await administer({ state: file }, true, (desk) =>
    changeAccount(desk, findAccount(desk, undefined).id, change),
  );
  return { plan: account.plan, credits: fromMicro(account.balanceMicro) };
}

function announce({ url, key, dashboard }: RunningSandbox, standing: Standing, flags: Flags): void {
  if (flags.json) {
    process.stdout.write(`${JSON.stringify({ url, key, dashboard })}\n`);
    return;
  }
  process.stdout.write(
    `sandbox listens on ${url} (plan ${standing.plan}, ${inCredits(credits(standing.credits))}); Ctrl-C ends it\n` +
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
