import { existsSync } from "node:fs";
import { defined } from "../../core/defined.js";
import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import { whyNoManifest } from "../../manifest/read.js";
import { manifestPath } from "../../options/manifest.js";
import { shownPath } from "../../report/problem-text.js";
import { sandboxFlag, shellWord } from "../../text/shell.js";
import { placeWorkspace } from "../../workspace/state-folder/state-folder.js";
import { findWorkspace, type Workspace } from "../../workspace/workspace.js";

/** Flags that say where the workspace is. */
export interface PlaceFlags {
  sandbox?: boolean;
  workspace?: string;
  out?: string;
  databaseUrl?: string;
}

/** The workspace that the flags name. */
export function workspaceOf(flags: PlaceFlags, { cwd, env }: Machine, manifest?: string): Workspace {
  return findWorkspace({
    cwd,
    sandbox: flags.sandbox ?? false,
    env,
    ...defined({ named: flags.workspace, out: flags.out, databaseUrl: flags.databaseUrl, manifest }),
  });
}

/** The workspace's folder, if a command that is typed in the current folder finds another workspace or none; else null. */
export function elsewhere(
  { root }: Pick<Workspace, "root">,
  sandbox: boolean,
  { cwd, env }: Machine,
): string | null {
  return findWorkspace({ cwd, sandbox, env }).root === root ? null : root;
}

/** The flags by which a command that is typed in the current folder finds this workspace, each after a blank. */
export function flagsTo(workspace: Pick<Workspace, "root">, sandbox: boolean, machine: Machine): string {
  const root = elsewhere(workspace, sandbox, machine);
  const words = [
    ...(root === null ? [] : ["--workspace", shownPath(root, machine.cwd)]),
    ...(sandbox ? ["--sandbox"] : []),
  ];
  return words.map((word) => ` ${shellWord(word)}`).join("");
}

/** Commands without the flags `--workspace` and `--sandbox`, or of which they mean something else. */
const placeless = /^bulkgen (init|help|schema|completion|sandbox|serve)\b| --help$/;

/** Commands for which a rehearsal is not another place: a schedule says itself what its runs are. */
const notRehearsed = /^bulkgen (schedule|trust)\b/;

/**
 * A message from within the program, whose commands do not say where the workspace is: if they would find another one in
 * the current folder, or none, they get its folder; and in a rehearsal `--sandbox`, so that they buy nothing. Those that are to
 * be typed in a folder that the message names stay.
 */
export function fromHere(
  message: string,
  workspace: Pick<Workspace, "root">,
  sandbox: boolean,
  machine: Machine,
): string {
  const there = flagsTo(workspace, false, machine);
  if (there === "" && !sandbox) return message;
  return message.replace(/`(bulkgen [a-z][^`]*)`(?! in )/g, (quoted, command: string) => {
    if (placeless.test(command)) return quoted;
    const place = command.includes(" --workspace ") ? "" : there;
    const isRehearsed = sandbox && !notRehearsed.test(command) && !/ --sandbox\b/.test(command);
    const rehearsal = sandboxFlag({ sandbox: isRehearsed });
    return `\`${command}${place}${rehearsal}\``;
  });
}

/**
 * The workspace for a command that changes it. Its state moves to a disk where databases are safe if it is not on one.
 * Throws EarlyExit.
 */
export function workspaceToChange(
  flags: PlaceFlags,
  machine: Machine,
  { manifest, make = false }: { manifest?: string; make?: boolean } = {},
): Workspace {
  const { clock, random, stderr } = machine;
  return placeWorkspace({
    find: () => workspaceOf(flags, machine, manifest),
    make,
    mounts: machine.mounts(),
    ...(machine.locks === undefined ? {} : { locks: machine.locks }),
    clock,
    random,
    tell: (line) => stderr.write(`bulkgen: ${line}\n`),
  });
}

/**
 * The workspace for the items of a manifest, which is made if there is none. A path that names no file makes no workspace:
 * it may be mistyped, and every folder below a workspace belongs to it. The run itself reports the path, so that a
 * scheduled run sends its notification. Throws EarlyExit.
 */
export async function workspaceFor(
  manifest: string,
  flags: PlaceFlags,
  machine: Machine,
): Promise<Workspace> {
  const make = (await whyNoManifest(manifestPath(manifest, machine))) === null;
  return workspaceToChange(flags, machine, { manifest, make });
}

/** The environment of commands that use the database of these flags. As a word, its address could show a password. */
export function withDatabase({ databaseUrl }: PlaceFlags, env: Machine["env"]): Machine["env"] {
  return databaseUrl === undefined ? env : { ...env, BULKGEN_DATABASE_URL: databaseUrl };
}

/** The workspace in whose folder commands will be started. Throws EarlyExit if the folder does not exist. */
export function workspaceToServe(flags: PlaceFlags, machine: Machine): Workspace {
  const { root } = workspaceOf(flags, machine);
  if (!existsSync(root))
    throw new EarlyExit("usage", `--workspace: there is no folder ${root}. Nothing was started.`);
  return workspaceToChange(flags, machine);
}
