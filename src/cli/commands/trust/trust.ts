import { dirname, resolve } from "node:path";
import { fingerprint } from "../../../api/key.js";
import { defined } from "../../../core/defined.js";
import { EarlyExit } from "../../../core/exit.js";
import { commandsOfJob } from "../../../job/after/settings.js";
import type { Machine } from "../../../machine.js";
import { openSource } from "../../../manifest/read.js";
import { manifestPath } from "../../../options/manifest.js";
import type { TrustFlags } from "../../../options/setup.js";
import { count } from "../../../text/amounts.js";
import { terminalText } from "../../../text/terminal.js";
import {
  agree,
  agreedFolders,
  type FolderValue,
  forget,
  notAgreed,
  shownFolderValue,
  useKey,
} from "../../../trust/trust.js";
import { checkedAddress } from "../../../workspace/connection.js";
import type { Workspace } from "../../../workspace/workspace.js";
import { askAbout } from "../../output/agreement.js";
import { folderValuesOf } from "../../settings/brought.js";
import { addressToAgree, serviceSettings } from "../../settings/env.js";
import { modelsValues, serviceFolder } from "../../settings/own-service.js";
import { placesOf, planValues, savedPlanIn } from "../../settings/saved-plan.js";
import { agreeToState, stateValues } from "../../settings/service-state.js";
import { workspaceOf } from "../../settings/workspace.js";
import type { Call } from "../call.js";
import { servedFolder } from "../serve/state.js";

/** Shows what a folder brings along that does something outward, and records that this user agrees to it. */
export async function trust({
  flags,
  args: { manifest },
  machine,
}: Call<TrustFlags, { manifest?: string }>): Promise<undefined> {
  const { stdout } = machine;
  const plan = manifest === undefined ? null : savedPlanIn(manifest, machine);
  const workspace = workspaceOf(
    plan === null ? flags : { workspace: plan.workspace, ...flags },
    machine,
    manifest,
  );
  const { root, sharedFolder } = workspace;
  if (flags.list) {
    stdout.write(listText(sharedFolder));
    return;
  }
  if (flags.forget) {
    const folders = new Set([
      root,
      ...(flags.models === undefined ? [] : [dirname(resolve(machine.cwd, flags.models))]),
    ]);
    const address = addressSetBy(workspace, machine);
    const forgotten = [...folders, ...stateFolders(workspace, flags, machine)].reduce(
      (sum, folder) => sum + forget(sharedFolder, folder, address),
      0,
    );
    stdout.write(`forgot ${count(forgotten, "agreement")} for ${terminalText(root)}\n`);
    return;
  }
  const settings = serviceSettings(flags, root, machine);
  const ofManifest = plan === null ? await ofJob(manifest, machine) : planValues(plan, root);
  const planPath = resolve(machine.cwd, manifest ?? "");
  const places = plan === null ? [] : placesOf(planPath, { ...plan, workspace: root });
  plan?.items.close();
  const states = flags.sandbox ? [] : stateFolders(workspace, flags, machine);
  const ofStates = states.map((folder) => ({ folder, values: stateValues(folder, machine) }));
  const ofModels =
    flags.models === undefined || flags.sandbox
      ? []
      : await modelsValues(resolve(machine.cwd, flags.models), machine, states);
  const modelsFolder = dirname(resolve(machine.cwd, flags.models ?? ""));
  const ofFolder = [...(await folderValuesOf(workspace, machine)), ...ofManifest];
  const address = flags.sandbox || flags.models !== undefined ? [] : addressToAgree(settings, workspace);
  const asked = [
    ...notAgreed(sharedFolder, dirname(planPath), places),
    ...notAgreed(sharedFolder, root, ofFolder),
    ...notAgreed(sharedFolder, modelsFolder, ofModels),
    ...ofStates.flatMap(({ folder, values }) => notAgreed(sharedFolder, folder, values)),
    ...address,
  ];
  if (asked.length === 0) {
    stdout.write(`${terminalText(root)} sets nothing that you have not agreed to on this machine\n`);
    return;
  }
  await confirmAll(asked, workspace, flags, machine);
  const now = machine.clock.now();
  agree(sharedFolder, dirname(planPath), places, now);
  agree(sharedFolder, root, [...ofFolder, ...address], now);
  agree(sharedFolder, modelsFolder, ofModels, now);
  for (const { folder, values } of ofStates)
    if (values.length > 0) agreeToState(folder, machine, sharedFolder);
  const [{ value } = { value: "" }] = address;
  if (settings.key && value !== "") useKey(sharedFolder, fingerprint(settings.key.value.trim()), value);
  stdout.write(`agreed to ${count(asked.length, "value")} of ${terminalText(root)}\n`);
}

/** Where the state of the service of a models file may be: in the workspace for runs, beside the file for `bulkgen serve`. */
function stateFolders(workspace: Workspace, flags: TrustFlags, machine: Machine): string[] {
  return [...new Set([serviceFolder(workspace), servedFolder(flags, machine, flags.models)])];
}

/** The address of the service that applies in a folder; null if there is none, or its settings cannot be read. */
function addressSetBy({ root }: Workspace, machine: Machine): string | null {
  try {
    const { baseUrl } = serviceSettings({}, root, machine);
    return baseUrl?.value ? checkedAddress(baseUrl.value).baseUrl : null;
  } catch (error) {
    if (error instanceof EarlyExit) return null;
    throw error;
  }
}

/** Throws EarlyExit for a no, and if nobody can be asked. */
async function confirmAll(
  asked: readonly FolderValue[],
  { root }: Workspace,
  { yes }: TrustFlags,
  machine: Machine,
): Promise<void> {
  const { stdin, stdout } = machine;
  if (yes || !stdin.isTTY) for (const value of asked) stdout.write(`${shownFolderValue(value)}\n`);
  if (yes) return;
  if (!stdin.isTTY)
    throw new EarlyExit(
      "usage",
      "there is no terminal to ask on. Add --yes to agree to these values. Nothing was agreed to.",
    );
  if (!(await askAbout(asked, root, machine)))
    throw new EarlyExit("usage", "not agreed; these values have no effect");
}

/** Where a job file publishes local inputs, and the commands that it wants to be run. */
async function ofJob(manifest: string | undefined, machine: Machine): Promise<FolderValue[]> {
  if (manifest === undefined) return [];
  const path = manifestPath(manifest, machine);
  const { job } = await openSource(path, {});
  return [
    ...(job?.publish === undefined ? [] : [{ setting: "publish", value: job.publish.to, from: path }]),
    ...commandsOfJob({ ...defined({ after: job?.after }), file: path }, { given: {} }),
  ];
}

function listText(sharedFolder: string): string {
  const lines = agreedFolders(sharedFolder).flatMap(({ folder, agreements }) => [
    terminalText(folder),
    ...agreements.map(({ setting, at }) => `  ${terminalText(setting)}, agreed ${at}`),
  ]);
  return lines.length === 0 ? "nothing has been agreed to on this machine\n" : `${lines.join("\n")}\n`;
}
