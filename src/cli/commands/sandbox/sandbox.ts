import { existsSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { PlanName } from "../../../api/plans.js";
import { EarlyExit } from "../../../core/exit.js";
import { credits, inCredits } from "../../../core/money.js";
import type { Machine } from "../../../machine.js";
import type { SandboxFlags } from "../../../options/sandbox.js";
import { readModelFile } from "../../../sandbox/catalogue/model-file.js";
import { readFaults } from "../../../sandbox/faults/plan.js";
import type { SandboxOptions } from "../../../sandbox/sandbox.js";
import { type RunningSandbox, serveSandbox } from "../../../sandbox/serve.js";
import { readSwitches } from "../../../sandbox/switch-file.js";
import { changeAccount, findAccount } from "../../../service/admin/accounts.js";
import { fromMicro } from "../../../service/state/state.js";
import { print } from "../../output/print.js";
import { fileTrouble } from "../../settings/file-trouble.js";
import { workspaceToChange } from "../../settings/workspace.js";
import type { Call } from "../call.js";
import { administer, memory, stateFile } from "./administer.js";

export async function sandbox({ flags, machine }: Call<SandboxFlags>): Promise<undefined> {
  const { clock, random, mediaSide } = machine;
  const rehearsal = await rehearsalOf(flags, machine);
  const file = stateToServe(flags, machine);
  const account = file === memory ? accountInMemory(flags) : accountIn(file, flags, machine);
  const options: SandboxOptions = {
    clock,
    random,
    mediaSide,
    file,
    port: flags.port,
    ...account,
    ...rehearsal,
    ...(flags.inputs === undefined ? {} : { inputRoot: inputFolder(flags.inputs, machine) }),
    onError: (error) => machine.stderr.write(`bulkgen: ${error.message}\n`),
    ...(flags.taskMs ? { taskMs: flags.taskMs } : {}),
  };
  const served = await serveSandbox(options).catch((error) => {
    throw new EarlyExit("usage", startProblem(error, flags.port));
  });
  announce(served, account, flags, machine);
  await new Promise<void>((resolve) =>
    machine.interrupt().addEventListener("abort", () => resolve(), { once: true }),
  );
  await served.close();
}

function inputFolder(folder: string, { cwd }: Machine): string {
  const path = resolve(cwd, folder);
  if (existsSync(path) && statSync(path).isDirectory()) return path;
  throw new EarlyExit("usage", `--inputs: expected a folder, got ${JSON.stringify(folder)}`);
}

/** What to do about a port that is not available. Rethrows any other error. */
function startProblem(error: NodeJS.ErrnoException, port: number): string {
  const advice = "Choose another with --port, or leave --port out to get a free one.";
  if (error.code === "EADDRINUSE") return `port ${port} is in use by another program. ${advice}`;
  if (error.code === "EACCES") return `port ${port} needs more rights than you have. ${advice}`;
  throw error;
}

/** Created if there is none, on a disk where databases are safe. */
function stateToServe(flags: SandboxFlags, machine: Machine): string {
  if (flags.state !== undefined) return stateFile(flags, machine);
  const { workspace } = flags;
  const place = { sandbox: true, ...(workspace === undefined ? {} : { workspace }) };
  return workspaceToChange(place, machine, { make: true }).serviceFile;
}

/** Models, switches and faults of the flags. Throws EarlyExit for a file that cannot be used. */
async function rehearsalOf(
  { models, switches, faults, faultSeed }: SandboxFlags,
  { cwd }: Machine,
): Promise<Partial<SandboxOptions>> {
  const read = (file: string) => {
    const path = resolve(cwd, file);
    return readFile(path, "utf8").catch((error: unknown) => {
      throw new Error(fileTrouble(error, path));
    });
  };
  try {
    return {
      ...(models === undefined ? {} : { models: readModelFile(await read(models), models) }),
      ...(switches === undefined ? {} : { switches: readSwitches(await read(switches), switches) }),
      ...(faults === undefined ? {} : { faults: await readFaults(faults, faultSeed, read) }),
    };
  } catch (error) {
    throw new EarlyExit("usage", (error as Error).message);
  }
}

/** Plan and credits of the sandbox's own account. */
interface SandboxAccount {
  plan: PlanName;
  credits: number;
}

function accountInMemory({ plan = "Pro", credits = 500 }: SandboxFlags): SandboxAccount {
  return { plan, credits };
}

/** The account in a state file, changed as the flags say. */
function accountIn(file: string, { plan, credits }: SandboxFlags, machine: Machine): SandboxAccount {
  const change = { ...(plan === undefined ? {} : { plan }), ...(credits === undefined ? {} : { credits }) };
  const account = administer({ state: file }, machine, true, (desk) =>
    changeAccount(desk, findAccount(desk, undefined).id, change),
  );
  return { plan: account.plan, credits: fromMicro(account.balanceMicro) };
}

function announce(
  { url, key, dashboard }: RunningSandbox,
  account: SandboxAccount,
  flags: SandboxFlags,
  machine: Machine,
): void {
  print(flags, machine, "sandbox", { url, key, dashboard }, () =>
    [
      `sandbox listens on ${url} (plan ${account.plan}, ${inCredits(credits(account.credits))}). Press Ctrl-C to stop it.`,
      `  dashboard: ${dashboard}`,
      `  export BULKGEN_BASE_URL=${url}`,
      `  export BULKGEN_API_KEY=${key}`,
    ].join("\n"),
  );
}
