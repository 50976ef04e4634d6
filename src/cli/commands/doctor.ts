import { existsSync } from "node:fs";
import type { Command } from "commander";
import type { Workspace } from "../../job/workspace/workspace.js";
import type { Check } from "../../report/doctor.js";
import { type SharedFlags, withService } from "../flags/shared.js";
import { endWith } from "../output/ending.js";
import { groundHere } from "../output/ground.js";

export function defineDoctor(program: Command): void {
  withService(program.command("doctor"))
    .description("look for what could stop a run: settings, key, limits, clock, disk, locks")
    .option("--out <folder>", "the output folder to look at (default: outputs in the workspace)")
    .option("--rebuild", "make a lost or damaged database again from receipts and archive; look at nothing")
    .option("--yes", "with --rebuild: do not ask (required without a terminal)")
    .option("--separate", "make a copied workspace one of its own, and look at nothing")
    .action(doctor);
}

interface DoctorFlags extends SharedFlags {
  out?: string;
  separate?: boolean;
  rebuild?: boolean;
  yes?: boolean;
}

async function doctor(flags: DoctorFlags): Promise<void> {
  if (flags.separate) return separate(flags);
  if (flags.rebuild) return (await import("./rebuild.js")).rebuild(flags);
  const [
    { examineMachine },
    { doctorExit, doctorText, settingsText },
    { lookFor },
    { systemClock },
    { workspaceOf },
    { configFiles, heldSettings },
  ] = await Promise.all([
    import("../../job/doctor/doctor.js"),
    import("../../report/doctor.js"),
    import("../../report/look.js"),
    import("../../system.js"),
    import("../output/job-options.js"),
    import("../settings/settings.js"),
  ]);
  const workspace = workspaceOf(flags);
  const node = process.versions.node;
  const machine = await examineMachine({ workspace, clock: systemClock, node, ground: groundHere() });
  const counts = machine.every(({ name, state }) => name !== "accounts" || state === "ok");
  const checks = [...machine, ...(await service(flags, workspace, counts))];
  const exit = doctorExit(checks);
  const settings = heldSettings([], await configFiles(workspace.root, process.env), process.env);
  const look = lookFor(process.stdout, process.env);
  const text = flags.json
    ? JSON.stringify({
        ok: exit === "done",
        exit,
        checks: checks.map(({ exit: _, ...check }) => check),
        settings,
      })
    : `${doctorText(checks, look)}\n\n${settingsText(settings, look)}`;
  process.stdout.write(`${text}\n`);
  endWith(exit);
}

async function separate(flags: DoctorFlags): Promise<void> {
  const [{ separateWorkspace }, { workspaceOf }, { systemClock, systemRandom }] = await Promise.all([
    import("../../job/place/separate.js"),
    import("../output/job-options.js"),
    import("../../system.js"),
  ]);
  const workspace = workspaceOf(flags);
  const other = separateWorkspace(workspace, { clock: systemClock, random: systemRandom });
  process.stdout.write(
    `${workspace.root} is a workspace of its own now, no longer a copy of ${other}; what neither has submitted, each pays for itself\n`,
  );
}

/** `counts`: the request that is sent can be counted. */
async function service(flags: SharedFlags, workspace: Workspace, counts: boolean): Promise<Check[]> {
  const [
    { examineService, serviceUnchecked },
    { settingChecks },
    { connect },
    { interruption },
    { systemClock },
  ] = await Promise.all([
    import("../../job/doctor/service.js"),
    import("./doctor-settings.js"),
    import("../settings/connect.js"),
    import("../output/signals.js"),
    import("../../system.js"),
  ]);
  const settings = flags.sandbox ? [] : settingChecks(flags, workspace);
  if (settings.some((check) => check.state === "problem")) {
    return [...settings, ...serviceUnchecked("without address and key nobody can be asked")];
  }
  if (!counts) return [...settings, ...serviceUnchecked("no request can be counted without accounts.db")];
  const place = flags.sandbox ? withoutTraces(workspace) : workspace;
  // The checks above tell what is to be known of the settings.
  const { connection, close } = await connect(flags, place, { warn: () => {} });
  try {
    const { accountsFile } = place;
    const options = { connection, accountsFile, clock: systemClock, signal: interruption() };
    return [...settings, ...(await examineService(options))];
  } finally {
    await close();
  }
}

/** Where the sandbox has not been used here, it is tried in memory, so that a look leaves nothing behind. */
function withoutTraces(workspace: Workspace): Workspace {
  const kept = (file: string) => (existsSync(file) ? file : ":memory:");
  return {
    ...workspace,
    serviceFile: kept(workspace.serviceFile),
    accountsFile: kept(workspace.accountsFile),
  };
}
