import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isKeyForm } from "../../api/key.js";
import { EarlyExit, type ExitName, exitCode } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import { runFlags } from "../../options/run.js";
import type { DoctorFlags } from "../../options/setup.js";
import type { ServiceSetting } from "../../options/shared.js";
import { doctorExit, doctorText, rebuiltText, settingsText } from "../../report/doctor.js";
import { wayOut } from "../../store/open.js";
import { count } from "../../text/amounts.js";
import { shellWord } from "../../text/shell.js";
import { type FolderValue, notAgreed, shownFolderValue } from "../../trust/trust.js";
import { type Check, examineMachine, fine, problem, warning } from "../../upkeep/doctor/machine.js";
import { examineService, serviceUnchecked } from "../../upkeep/doctor/service.js";
import { type RebuildOffer, rebuildWorkspace } from "../../upkeep/rebuild/rebuild.js";
import { checkedAddress, shapeOf } from "../../workspace/connection.js";
import { refuseMoved } from "../../workspace/history.js";
import { mustBeHere } from "../../workspace/state.js";
import { separateWorkspace } from "../../workspace/state-folder/state-folder.js";
import type { Workspace } from "../../workspace/workspace.js";
import { exitOf } from "../output/ending.js";
import { openLog } from "../output/log.js";
import { print } from "../output/print.js";
import { confirmed } from "../output/question.js";
import { scheduleValues } from "../settings/brought.js";
import { connect } from "../settings/connect.js";
import {
  addressToAgree,
  envFile,
  openToOthers,
  type ServiceSettings,
  serviceSettings,
} from "../settings/env.js";
import { fileTrouble } from "../settings/file-trouble.js";
import { checkedProviders, modelsValues } from "../settings/own-service.js";
import { configFiles, effectiveSettings, folderValues } from "../settings/settings.js";
import { flagsTo, workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function doctor({ flags, machine }: Call<DoctorFlags>): Promise<ExitName | undefined> {
  if (flags.separate) return separate(flags, machine);
  if (flags.rebuild) return rebuild(flags, machine);
  const { env, clock } = machine;
  const workspace = workspaceOf(flags, machine);
  const node = process.versions.node;
  const { locks } = machine;
  const here = await examineMachine({
    workspace,
    clock,
    node,
    mounts: machine.mounts(),
    locks,
    environment: machine.env,
  });
  const countable = here.every(({ name, state }) => name !== "accounts" || state === "ok");
  const checks = [
    ...here,
    ...(await trusted(workspace, machine)),
    ...(await service(flags, machine, workspace, countable)),
  ];
  const exit = doctorExit(checks);
  const settings = effectiveSettings([], await configFiles(workspace.root, env), env);
  const shown = checks.map(({ exit: _, ...check }) => check);
  const document = { ok: exit === "done", exit: exitCode(exit), exitName: exit, checks: shown, settings };
  print(
    flags,
    machine,
    "doctor",
    document,
    (style) => `${doctorText(checks, style)}\n\n${settingsText(settings, style)}`,
  );
  return exit;
}

/** What came with the folder and has no effect yet. */
async function trusted(workspace: Workspace, machine: Machine): Promise<Check[]> {
  const { env } = machine;
  const settings = folderValues(runFlags, {}, await configFiles(workspace.root, env), env);
  const values = [...settings, ...(await scheduleValues(workspace))];
  const asked = notAgreed(workspace.sharedFolder, workspace.root, values);
  if (asked.length === 0) return [];
  const got = asked.map(shownFolderValue).join("; ");
  const expected = "settings of the folder that you have agreed to";
  return [warning("trust", { expected, got, todo: "run `bulkgen trust` to look and agree" })];
}

function separate(flags: DoctorFlags, machine: Machine): undefined {
  const workspace = workspaceOf(flags, machine);
  mustBeHere(workspace, "Copies of a folder may share a database: there is nothing to separate.");
  const { clock, random } = machine;
  const copyOf = separateWorkspace(workspace, { clock, random });
  const { root } = workspace;
  print(
    flags,
    machine,
    "separate",
    { workspace: root, copyOf },
    () =>
      `${root} is now an independent workspace, no longer a copy of ${copyOf}. Items not submitted yet will be paid for in both.`,
  );
}

/** `countable`: the request that this sends can be counted. */
async function service(
  flags: DoctorFlags,
  machine: Machine,
  workspace: Workspace,
  countable: boolean,
): Promise<Check[]> {
  const models = flags.sandbox || flags.models === undefined ? null : resolve(machine.cwd, flags.models);
  const settings = flags.sandbox
    ? []
    : models === null
      ? settingChecks(flags, machine, workspace)
      : await modelsChecks(models, machine, workspace);
  if (settings.some((check) => check.state === "problem")) {
    const needs = models === null ? "a base URL and an API key" : "a models file that can be used";
    return [...settings, ...serviceUnchecked(`needs ${needs}`)];
  }
  const ledger = workspace.database === null ? "accounts.db" : "the database";
  if (!countable) return [...settings, ...serviceUnchecked(`no request can be counted without ${ledger}`)];
  const place = flags.sandbox ? withoutTraces(workspace) : workspace;
  // The checks above report problems with the settings.
  const connected = await connect(flags, machine, place, { warn: () => {}, isBrief: true }).catch(
    (error: unknown) => {
      if (models === null || exitOf(error) === "crash") throw error;
      const got = error instanceof EarlyExit ? error.message : fileTrouble(error);
      const todo = wayOut(error) ?? "do that, then check again";
      return problem("own service", { expected: "a service of the models", got, todo });
    },
  );
  if ("state" in connected)
    return [...settings, connected, ...serviceUnchecked("needs the service of the models")];
  const { connection, close } = connected;
  try {
    const options = {
      connection,
      place,
      clock: machine.clock,
      log: await openLog(flags, machine),
      signal: machine.interrupt(),
    };
    return [...settings, ...(await examineService(options))];
  } finally {
    await close();
  }
}

/** The models file, what it may do, and each provider with its programs, its server and its key. */
async function modelsChecks(file: string, machine: Machine, { sharedFolder }: Workspace): Promise<Check[]> {
  const expected = "a file with models that can be used";
  let asked: FolderValue[];
  try {
    asked = notAgreed(sharedFolder, dirname(file), await modelsValues(file, machine));
  } catch (error) {
    if (!(error instanceof EarlyExit)) throw error;
    return [problem("models file", { expected, got: error.message, todo: "correct the file" })];
  }
  if (asked.length > 0)
    return [
      problem("models file", {
        expected: "what it does with keys and programs, agreed to",
        got: asked.map(shownFolderValue).join("; "),
        todo: `run \`bulkgen trust --models ${shellWord(file)}\` to look and agree`,
      }),
    ];
  const providers = await checkedProviders(file, machine);
  return [
    fine("models file", expected, file),
    ...providers.map(({ provider, kind, models, problem: wrong }) =>
      wrong === null
        ? fine(`provider ${provider}`, `${kind}, ready`, `${kind}: ${models.join(", ")}`)
        : warning(`provider ${provider}`, {
            expected: `${kind}, ready`,
            got: wrong,
            todo: `until then, ${models.join(", ")} cannot be made`,
          }),
    ),
  ];
}

/** If the sandbox was never used here, it is tried in memory, so that the check leaves no files behind. */
function withoutTraces(workspace: Workspace): Workspace {
  const kept = (file: string) => (existsSync(file) ? file : ":memory:");
  return {
    ...workspace,
    serviceFile: kept(workspace.serviceFile),
    accountsFile: kept(workspace.accountsFile),
    database: null,
  };
}

const expectedUrl = "the service's address, such as https://service.example";
const expectedKey = "svc_ and 32 letters or digits";

/** Address and key as they are set, without a request. A key is never shown. */
function settingChecks(flags: DoctorFlags, machine: Machine, workspace: Workspace): Check[] {
  const { root } = workspace;
  const file = envFile(root);
  let settings: ServiceSettings;
  try {
    settings = serviceSettings(flags, root, machine);
  } catch (error) {
    const todo = "make the file readable";
    return [problem("settings", { expected: "files that can be read", got: foreseen(error), todo })];
  }
  const open = openToOthers(file);
  const mode = {
    expected: "a file that only you can read",
    got: open ?? "",
    todo: `chmod 600 ${shellWord(file)}`,
  };
  const todo = (name: string) => `set ${name} in the environment or in ${file}, or add --sandbox`;
  return [
    ...(open === null ? [] : [warning(".env", mode)]),
    baseUrlCheck(settings, flags.trustAddress ? null : workspace, todo("BULKGEN_BASE_URL")),
    keyCheck(settings.key, todo("BULKGEN_API_KEY")),
  ];
}

/** `workspace` is null if the user has agreed to the address with --trust-address. */
function baseUrlCheck(settings: ServiceSettings, workspace: Workspace | null, todo: string): Check {
  const setting = settings.baseUrl;
  if (!setting?.value) return problem("base URL", { expected: expectedUrl, got: "nothing", todo });
  try {
    const { baseUrl } = checkedAddress(setting.value);
    const [asked] = workspace === null ? [] : addressToAgree(settings, workspace);
    if (asked !== undefined)
      return problem("base URL", {
        expected: "an address that you have agreed to, for a key of your own",
        got: shownFolderValue(asked),
        todo: `if ${baseUrl} is your service, run \`bulkgen trust\``,
      });
    return fine("base URL", expectedUrl, `${baseUrl} (from ${setting.from})`);
  } catch (error) {
    return problem("base URL", {
      expected: expectedUrl,
      got: `${foreseen(error)} (from ${setting.from})`,
      todo,
    });
  }
}

function keyCheck(setting: ServiceSetting | null, todo: string): Check {
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
async function rebuild(flags: DoctorFlags, machine: Machine): Promise<undefined> {
  const { stderr, clock } = machine;
  const interrupt = machine.interrupt();
  const workspace = workspaceOf(flags, machine);
  mustBeHere(workspace, "Restore the database from a backup.");
  refuseMoved(workspace);
  const rebuilt = await rebuildWorkspace({
    workspace,
    clock,
    consent: (offer) => {
      if (!flags.quiet && !flags.json) stderr.write(`${rebuildOffer(offer)}\n`);
      const [would, question] = offer.present
        ? ["this would replace the database", "Replace the database?"]
        : ["this would make a database", "Make a new database?"];
      return confirmed(flags, machine, interrupt, { would, question, done: "changed" });
    },
  });
  print(flags, machine, "rebuild", rebuilt, (style) =>
    rebuiltText(rebuilt, flagsTo(workspace, flags.sandbox ?? false, machine), style),
  );
}

function rebuildOffer({ database, found, present, readable }: RebuildOffer): string {
  const restored = `${count(found, "item")} can be restored from receipts and archive`;
  if (!present) return `${database} is missing; ${restored}.`;
  const now =
    readable === null
      ? "cannot be read"
      : `is readable and has ${count(readable, "item")}; facts that only it has would be lost`;
  return `${database} ${now}; ${restored}. The old database is kept beside it.`;
}
