import { resolve } from "node:path";
import type { Run } from "../../core/ports/store.js";
import { leavesReally } from "../../text/inside.js";
import { agree, type FolderValue, notAgreed, shownFolderValue, unagreed } from "../../trust/trust.js";
import { readIdentity } from "../../workspace/identity.js";
import type { Workspace } from "../../workspace/workspace.js";
import { commandValue } from "../after/settings.js";

/**
 * What a run on record does outside of its workspace: a received state could send files to somebody's bucket, or read and
 * write anywhere.
 */
export function runValues(
  { id, options, outFolder, manifest }: Pick<Run, "id" | "options" | "outFolder" | "manifest">,
  { root, stateFile }: Pick<Workspace, "root" | "stateFile">,
): FolderValue[] {
  const from = `run ${id} in ${stateFile}`;
  const outside = (setting: string, path: string) =>
    leavesReally(root, resolve(root, path)) ? [{ setting, value: path, from }] : [];
  return [
    ...(options.archive === undefined ? [] : [{ setting: "archive", value: options.archive, from }]),
    ...(options.publish === undefined ? [] : [{ setting: "publish", value: options.publish, from }]),
    ...(options.afterFile ? [commandValue("file", options.afterFile, from)] : []),
    ...(options.afterSet ? [commandValue("set", options.afterSet, from)] : []),
    ...outside("out", outFolder),
    ...(["", "-"].includes(manifest) ? [] : outside("manifest", manifest)),
  ];
}

/** The output folders of runs that lie outside of the workspace. A server's state is the user's own. */
export function outValues(runs: readonly Run[], workspace: Workspace): FolderValue[] {
  if (workspace.database !== null) return [];
  const all = runs.flatMap((run) => runValues(run, workspace)).filter(({ setting }) => setting === "out");
  return [...new Map(all.map((value) => [value.value, value])).values()];
}

/** A run that begins here has what its user gave it, or agreed to. */
export function agreeToRun(run: Run, workspace: Workspace, now: number): void {
  if (workspace.database !== null) return;
  agree(workspace.sharedFolder, workspace.root, [...runValues(run, workspace), begunHere(workspace)], now);
}

/** Whether a run of this workspace was begun on this machine by this user. */
export function hasBegunHere(workspace: Workspace): boolean {
  if (workspace.database !== null) return true;
  const { sharedFolder, root } = workspace;
  return notAgreed(sharedFolder, root, [{ ...begunHere(workspace), from: "" }]).length === 0;
}

/** The state is part of the value: another one in the same folder may have come from somebody else. */
function begunHere({ markerFolder }: Pick<Workspace, "markerFolder">) {
  return { setting: "runs", value: readIdentity(markerFolder)?.id ?? "" };
}

/**
 * Throws EarlyExit for a run that does something outward that nobody has agreed to here, but for what only buying needs. A
 * server's state is the user's own.
 */
export function refuseUnagreed(run: Run, workspace: Workspace): void {
  const asked = unagreedValues(run, workspace).filter(({ setting }) => setting !== "publish");
  if (asked.length > 0) throw unagreed(workspace.root, asked, "bulkgen trust");
}

/** Why nothing is bought whose local inputs would be published where nobody has agreed to. Null if that is not so. */
export function unagreedPublish(run: Run, workspace: Workspace): string | null {
  const asked = unagreedValues(run, workspace).find(({ setting }) => setting === "publish");
  return asked === undefined
    ? null
    : `${shownFolderValue(asked)} may come from somebody else, and you have not agreed to it on this machine: run \`bulkgen trust\` to look and agree`;
}

function unagreedValues(run: Run, workspace: Workspace): FolderValue[] {
  if (workspace.database !== null) return [];
  return notAgreed(workspace.sharedFolder, workspace.root, runValues(run, workspace));
}
