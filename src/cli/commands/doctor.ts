import { existsSync } from "node:fs";
import type { Command } from "commander";
import { isKeyForm } from "../../api/key.js";
import { EarlyExit } from "../../core/exit.js";
import { type Check, fine, problem, warning } from "../../job/doctor/check.js";
import { type RebuildOffer, rebuildWorkspace } from "../../job/rebuild/rebuild.js";
import type { Workspace } from "../../job/workspace/workspace.js";
import { rebuiltText } from "../../report/rebuilt.js";
import { systemClock } from "../../system.js";
import { count } from "../../text/amounts.js";
import { terminalStyle } from "../../text/table.js";
import { type SharedFlags, withService } from "../flags/shared.js";
import { confirmed } from "../output/consent.js";
import { endWith } from "../output/ending.js";
import { groundHere, workspaceOf } from "../output/session.js";
import { interruption } from "../output/signals.js";
import { address, shapeOf } from "../settings/connect.js";
import {
  envFile,
  foreignAddress,
  inheritedEnvironment,
  openToOthers,
  type ServiceSettings,
  type Setting,
  serviceSettings,
} from "../settings/env.js";

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
  if (flags.rebuild) return (await import("./doctor.js")).rebuild(flags);
  const [
    { examineMachine },
    { doctorExit, doctorText, settingsText },
    { terminalStyle },
    { systemClock },
    { workspaceOf },
    { configFiles, heldSettings },
  ] = await Promise.all([
    import("../../job/doctor/machine.js"),
    import("../../report/doctor.js"),
    import("../../text/table.js"),
    import("../../system.js"),
    import("../output/session.js"),
    import("../settings/settings.js"),
  ]);
  const workspace = workspaceOf(flags);
  const node = process.versions.node;
  const machine = await examineMachine({ workspace, clock: systemClock, node, ground: groundHere() });
  const counts = machine.every(({ name, state }) => name !== "accounts" || state === "ok");
  const checks = [...machine, ...(await service(flags, workspace, counts))];
  const exit = doctorExit(checks);
  const settings = heldSettings([], await configFiles(workspace.root, process.env), process.env);
  const look = terminalStyle(process.stdout, process.env);
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
    import("../output/session.js"),
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
    { openLog },
  ] = await Promise.all([
    import("../../job/doctor/service.js"),
    import("./doctor.js"),
    import("../settings/connect.js"),
    import("../output/signals.js"),
    import("../../system.js"),
    import("../output/log.js"),
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
    const log = await openLog(flags.logLevel);
    const options = { connection, accountsFile, clock: systemClock, log, signal: interruption() };
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

const expectedUrl = "the service's address, such as https://service.example";
const expectedKey = "svc_ and 32 letters or digits";

/** Address and key as they are set, without asking anybody. A key is never shown. */
export function settingChecks(flags: SharedFlags, { root }: Workspace): Check[] {
  const file = envFile(root);
  let settings: ServiceSettings;
  try {
    settings = serviceSettings(flags, root, inheritedEnvironment());
  } catch (error) {
    const todo = "make the file readable";
    return [problem("settings", { expected: "files that can be read", got: foreseen(error), todo })];
  }
  const open = openToOthers(file);
  const mode = { expected: "a file that only you may read", got: open ?? "", todo: `chmod 600 ${file}` };
  const todo = (name: string) => `set ${name} in the environment or in ${file}, or add --sandbox`;
  return [
    ...(open === null ? [] : [warning(".env", mode)]),
    baseUrlCheck(settings, root, todo("BULKGEN_BASE_URL")),
    keyCheck(settings.key, todo("BULKGEN_API_KEY")),
  ];
}

function baseUrlCheck(settings: ServiceSettings, root: string, todo: string): Check {
  const setting = settings.baseUrl;
  if (!setting?.value) return problem("base URL", { expected: expectedUrl, got: "nothing", todo });
  try {
    const { baseUrl } = address(setting.value);
    const foreign = foreignAddress(settings, baseUrl, root);
    const expected = "an address and a key from the same place";
    if (foreign)
      return warning("base URL", { expected, got: foreign, todo: `see that ${baseUrl} is your service` });
    return fine("base URL", expectedUrl, `${baseUrl} (from ${setting.from})`);
  } catch (error) {
    return problem("base URL", {
      expected: expectedUrl,
      got: `${foreseen(error)} (from ${setting.from})`,
      todo,
    });
  }
}

function keyCheck(setting: Setting | null, todo: string): Check {
  if (!setting?.value) return problem("key form", { expected: expectedKey, got: "nothing", todo });
  const { value, from } = setting;
  if (isKeyForm(value)) return fine("key form", expectedKey, `as expected (from ${from})`);
  const got = `${shapeOf(value)} (from ${from})`;
  return problem("key form", { expected: expectedKey, got, todo: "copy the key again, whole" }, "key");
}

function foreseen(error: unknown): string {
  if (error instanceof EarlyExit) return error.message;
  throw error;
}

/** `bulkgen doctor --rebuild`. */
export async function rebuild(flags: SharedFlags & { out?: string; yes?: boolean }): Promise<void> {
  const interrupt = interruption();
  const rebuilt = await rebuildWorkspace({
    workspace: workspaceOf(flags),
    clock: systemClock,
    consent: (offer) => {
      if (!flags.quiet && !flags.json) process.stderr.write(`${offerText(offer)}\n`);
      const would = offer.present ? "this would replace the database" : "this would make a database";
      return confirmed(flags, interrupt, { would, done: "changed" });
    },
  });
  const { counts, ...facts } = rebuilt;
  const text = flags.json
    ? JSON.stringify({ ...facts, counts })
    : rebuiltText(rebuilt, terminalStyle(process.stdout, process.env));
  process.stdout.write(`${text}\n`);
}

function offerText({ database, found, present, readable }: RebuildOffer): string {
  const come = `${count(found, "item")} would come back from receipts and archive`;
  if (!present) return `${database} is missing; ${come}.`;
  const now =
    readable === null
      ? "cannot be read"
      : `can be read and knows ${count(readable, "item")}: what only it knows would be gone`;
  return `${database} ${now}; ${come}. The old database is kept beside it.`;
}
